// Reads records of launches, 64 bytes each, and names what is in them.

const BYTES = 64;
const OTHER_SESSIONS = 127;
export const REASONS = [
  "no other session had a row of this program ready",
  "every session that was ready had joined",
  "other sessions were ready, but in another lane",
  "it had as many rows as device.most_rows allows",
  "more rows would not fit in the device's memory",
  "more rows would take longer than device.submission_s",
];

// Reads the records of a message. Times are in ns of the server's clock; `names` has those of the record's device.
export function readRecords(view, namesOf) {
  const records = [];
  for (let at = 0; at + BYTES <= view.byteLength; at += BYTES) {
    const endedNs = long(view, at);
    const deviceNs = long(view, at + 8);
    const device = view.getUint8(at + 62);
    records.push({
      endedNs,
      deviceNs,
      beganNs: endedNs - deviceNs,
      mask: [16, 20, 24, 28].map(offset => view.getUint32(at + offset, true)),
      number: view.getUint32(at + 32, true),
      count: view.getUint32(at + 36, true),
      orderNs: view.getFloat32(at + 40, true),
      queueNs: view.getFloat32(at + 44, true),
      iterations: view.getUint32(at + 48, true),
      resultBytes: view.getFloat32(at + 52, true),
      program: view.getUint16(at + 56, true),
      rows: view.getUint16(at + 58, true),
      reason: view.getUint8(at + 60),
      tier: view.getUint8(at + 61),
      failed: view.getUint8(at + 63),
      device,
      names: namesOf(device),
    });
  }
  return records;
}

// Returns the bits of the sessions of a record.
export function bitsOf(record) {
  const bits = [];
  record.mask.forEach((part, place) => {
    for (let rest = part; rest; rest &= rest - 1) bits.push(32 * place + 31 - Math.clz32(rest & -rest));
  });
  return bits;
}

export function hasBit(record, bit) {
  return (record.mask[bit >> 5] >>> (bit & 31)) & 1;
}

// Returns the sessions of a record: each with its id and name. Those without a bit of their own are one.
export function sessionsOf(record) {
  return bitsOf(record).map(bit =>
    bit === OTHER_SESSIONS ? { id: "", name: "others" } : record.names.sessions.get(bit) || { id: "", name: "another" });
}

export function digestOf(record) {
  return record.names.programs.get(record.program)?.digest || "";
}

function long(view, at) {
  return view.getUint32(at, true) + 4294967296 * view.getUint32(at + 4, true);
}
