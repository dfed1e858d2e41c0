//! Real clients against the real binary: what they write they read back, in order, also after a restart and after kill -9.
//!
//! A test whose client is not installed is shown as ignored with what is missing, and never as passed;
//! `tests/clients/setup.sh` installs them all.

mod broker;
mod clients;
mod command;
mod compaction;
mod copy;
mod java;
mod kafka;
mod kafka_files;
mod kcat;
mod ledger;
mod lines;
mod our_own;
mod round_trips;
mod rsyslog;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Trial};

use clients::NotRun;

/// Brokers and JVMs, each with threads of its own.
const TESTS_TOGETHER: usize = 2;

/// A test that needs a client, which may be missing.
type Body = fn() -> Result<(), NotRun>;

const TESTS: &[(&str, Body)] = &[
    ("our_own::acknowledged_records_survive_kill_9", our_own::acknowledged_records_survive_kill_9),
    ("our_own::a_peer_that_only_listens_on_is_answered", our_own::a_peer_that_only_listens_on_is_answered),
    ("kcat::lines_come_back_in_every_compression", kcat::lines_come_back_in_every_compression),
    ("kcat::a_group_reads_all_partitions", kcat::a_group_reads_all_partitions),
    ("kcat::nothing_is_lost_or_doubled_over_restarts", kcat::nothing_is_lost_or_doubled_over_restarts),
    ("rsyslog::a_log_file_is_shipped", rsyslog::a_log_file_is_shipped),
    ("ledger::acknowledged_lines_survive_kill_9", ledger::acknowledged_lines_survive_kill_9),
    ("copy::a_copy_in_transactions_is_exact_over_kill_9", copy::a_copy_in_transactions_is_exact_over_kill_9),
    ("round_trips::confluent_kafka", round_trips::confluent_kafka),
    ("round_trips::kafka_python", round_trips::kafka_python),
    ("round_trips::kafka_js", round_trips::kafka_js),
    ("round_trips::franz_go", round_trips::franz),
    ("java::console_tools_read_what_they_wrote", java::console_tools_read_what_they_wrote),
    ("java::kafkas_tool_changes_settings", java::kafkas_tool_changes_settings),
    ("java::a_share_group_gets_every_line_once", java::a_share_group_gets_every_line_once),
    ("kafka_files::dump_log_reads_our_files", kafka_files::dump_log_reads_our_files),
    ("kafka_files::dump_log_reads_what_was_cleaned", kafka_files::dump_log_reads_what_was_cleaned),
    ("compaction::we_keep_what_kafka_keeps", compaction::we_keep_what_kafka_keeps),
    ("kafka_files::a_folder_moves_from_kafka_and_back", kafka_files::a_folder_moves_from_kafka_and_back),
];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(TESTS_TOGETHER);
    let trial = |(name, body): &(&str, Body)| {
        let body = *body;
        Trial::ignorable_test(*name, move || match body() {
            Ok(()) => Ok(Completion::Completed),
            Err(NotRun(why)) => Ok(Completion::ignored_with(format!("not run: {why}"))),
        })
    };
    libtest_mimic::run(&arguments, TESTS.iter().map(trial).collect()).exit_code()
}
