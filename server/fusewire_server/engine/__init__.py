"""The conductor and its helpers: sessions come and go, frames become orders, reports become answers."""
