#!/bin/sh
# Makes what a server that other machines can reach needs: a certificate authority, the server's certificate, tokens,
# and a password for Grafana. Does nothing that is done already. To make one of them anew, delete its file and run this
# again. With ca.pem delete server.pem too, which it has signed; with the file `tokens` delete all files *.token. The
# token of a deleted file *.token stays valid until `fusewire token revoke` removes it from `tokens`.
#
# NAMES: the names and addresses of the server, as clients write them: "DNS:gpu.example,IP:10.0.0.5". To change them,
# delete server.pem.
set -eu
umask 077
server=${SERVER_DIR:-/etc/fusewire/server}       # for the server and its operator
clients=${CLIENTS_DIR:-/etc/fusewire/clients}    # given to clients
watchers=${WATCHERS_DIR:-/etc/fusewire/watchers} # for Prometheus and Grafana
names=${NAMES:-DNS:localhost,IP:127.0.0.1}

if [ ! -e "$clients/ca.pem" ]; then
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=Fusewire CA" \
        -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign,cRLSign" \
        -keyout "$server/ca.key" -out "$clients/ca.pem"
fi
if [ ! -e "$server/server.pem" ]; then
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=Fusewire server" \
        -keyout "$server/server.key" -out "$server/server.csr"
    printf 'subjectAltName=%s\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n' "$names" >"$server/server.ext"
    openssl x509 -req -days 397 -in "$server/server.csr" -CA "$clients/ca.pem" -CAkey "$server/ca.key" \
        -CAcreateserial -CAserial "$server/ca.srl" -extfile "$server/server.ext" -out "$server/server.pem"
    rm "$server/server.csr" "$server/server.ext"
fi

# Writes a token of scope $1 in file $2, without the end of a line, which Prometheus's operator does not remove.
mint() {
    if [ ! -e "$2" ]; then
        token=$(fusewire token mint --tenant default --scope "$1" --token-file "$server/tokens")
        printf '%s' "$token" >"$2.new"
        mv "$2.new" "$2"
    fi
}

mint use "$clients/use.token"
mint inspect "$watchers/inspect.token"
mint admin "$server/admin.token"
cp "$clients/ca.pem" "$watchers/ca.pem"
if [ ! -e "$watchers/grafana.password" ]; then
    openssl rand -hex 16 >"$watchers/grafana.password"
fi
