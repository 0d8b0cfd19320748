//! How strictly YAML is read, here and by the build script.

use serde_yaml::Options;
use serde_yaml::options::{DuplicateKeyPolicy, MergeKeyPolicy};

/// Deeper than any config needs, and shallow enough that no parser stack notices.
const MAX_DEPTH: usize = 24;
/// More aliases than a person writes, and too few to grow a megabyte of text into anything.
const MAX_ALIASES: usize = 64;
const MAX_ALIAS_EVENTS: usize = 10_000;

/// The options of every parser of this crate.
pub(crate) fn options() -> Options {
    serde_yaml::options! {
        strict_booleans: true,
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        reject_unsupported_tags: true,
        reject_tagged_field_names: true,
        with_snippet: false,
        budget: serde_yaml::budget! {
            max_depth: MAX_DEPTH,
            max_aliases: MAX_ALIASES,
            max_anchors: MAX_ALIASES,
            max_nodes: 100_000,
            max_events: 300_000,
            max_documents: 1,
        },
        alias_limits: serde_yaml::alias_limits! {
            max_total_replayed_events: MAX_ALIAS_EVENTS,
            max_replay_stack_depth: 8,
            max_alias_expansions_per_anchor: MAX_ALIASES,
        },
    }
}
