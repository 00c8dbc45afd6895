//! The loop that handles the events of a list and watch.
//!
//! The loop runs forever. It backs off after failures, counts objects that cannot be parsed, and sends heartbeats to
//! the supervisor. An [`EventHandler`] stores the objects and reports failures.

use kube::Resource;
use serde::de::DeserializeOwned;

use super::list_watch::{ListWatch, ListWatchConfig, ListWatchEvent};
use super::unreadable::UnreadableObjects;
use crate::cluster::error::Error;
use crate::controller::context::Context;
use crate::controller::process::backoff::Backoff;
use crate::controller::process::supervisor::WATCH_LIMIT;
use crate::controller::subjects::packed::full_name;

/// Events about the objects of a kind.
pub(crate) enum Event<K> {
    /// A list starts.
    Init,
    /// An object of the list.
    InitApply(K),
    /// A listed object that cannot be parsed, as its name or `namespace/name`. Its stored state remains.
    InitKeep(String),
    /// The list is complete.
    InitDone,
    Apply(K),
    Delete(K),
}

pub(crate) trait EventHandler<K> {
    fn on_event(&mut self, event: Event<K>);

    /// Called when the watch works: after a change, a bookmark or the end of a list.
    fn on_progress(&mut self);

    /// Called when the watch fails. After a backoff, the watch is retried.
    fn on_error(&mut self, error: &Error);

    /// Called when the number `n` of objects that cannot be parsed has changed.
    fn on_unreadable(&mut self, n: usize);
}

/// Watches the objects of `config`, and passes the events to `handler`. Never returns.
///
/// `task` is the name of the watch for the supervisor. Log messages contain the name `resource`.
pub(crate) async fn reflect<K>(
    context: &Context,
    (task, resource): (&str, String),
    config: ListWatchConfig,
    handler: &mut impl EventHandler<K>,
) where
    K: Resource + DeserializeOwned,
{
    let mut watch = ListWatch::<K>::new(context.client.clone(), config);
    let mut backoff = Backoff::default();
    let limit = WATCH_LIMIT.max(context.settings.watch_timeout * 2);
    let heartbeat = context.supervisor.heartbeat(format!("watch-{task}"), limit);
    let mut unreadable = UnreadableObjects::new(resource);
    let mut n_unreadable = 0;
    handler.on_unreadable(n_unreadable);
    let mut is_listing = false;
    loop {
        let sign = watch.next().await;
        heartbeat.beat();
        match sign {
            ListWatchEvent::Init => {
                is_listing = true;
                unreadable.begin_list();
                handler.on_event(Event::Init);
            }
            ListWatchEvent::InitApply(object) => handler.on_event(Event::InitApply(object)),
            ListWatchEvent::InitDone => {
                is_listing = false;
                unreadable.end_list();
                handler.on_event(Event::InitDone);
            }
            ListWatchEvent::Apply(object) => {
                unreadable.forget(&name_of(&object));
                handler.on_event(Event::Apply(object));
                handler.on_progress();
            }
            ListWatchEvent::Delete(object) => {
                unreadable.forget(&name_of(&object));
                handler.on_event(Event::Delete(object));
            }
            ListWatchEvent::Alive => handler.on_progress(),
            ListWatchEvent::Unreadable(object) => {
                if is_listing {
                    handler.on_event(Event::InitKeep(object.name.clone()));
                }
                unreadable.note(context, object);
            }
            ListWatchEvent::Expired => {
                tracing::debug!(what = task, "the resource version expired, relisting");
                backoff.rest(&context.readiness).await;
            }
            ListWatchEvent::Failed(error) => {
                handler.on_error(&error);
                backoff.rest(&context.readiness).await;
            }
        }
        if unreadable.len() != n_unreadable {
            n_unreadable = unreadable.len();
            handler.on_unreadable(n_unreadable);
        }
    }
}

fn name_of(object: &impl Resource) -> String {
    let metadata = object.meta();
    full_name(metadata.namespace.as_deref(), metadata.name.as_deref())
}
