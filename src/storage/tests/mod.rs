//! Logs on the simulated disk: against a naive model, through crashes and damage, and as Kafka wrote them.

mod append_read;
mod close;
mod crash;
mod damage;
mod folder;
mod journal;
mod journal_damage;
mod journal_room;
mod kafka_folder;
mod leftovers;
mod lost_pages;
pub mod model;
mod retention;
mod scrub;
mod times;
mod transactions;
