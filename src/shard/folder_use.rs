use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

#[derive(Default)]
struct State {
    users: Cell<usize>,
    has_ended: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// Who writes in a partition's folder by name right now. The folder of a deleted topic is moved only once nobody does: what is
/// written under a name that is gone fails and looks like a broken disk, or lands in the folder of the next topic of that name.
#[derive(Default)]
pub(super) struct FolderUse(Rc<State>);

/// One user, until it drops.
pub struct FolderUser(Rc<State>);

impl FolderUse {
    /// `None`: the folder is, or will soon be, out of use.
    pub(super) fn begin(&self) -> Option<FolderUser> {
        if self.0.has_ended.get() {
            return None;
        }
        self.0.users.set(self.0.users.get() + 1);
        Some(FolderUser(self.0.clone()))
    }

    /// Whether nobody is let in any more.
    pub(super) fn has_ended(&self) -> bool {
        self.0.has_ended.get()
    }

    /// Lets nobody in any more, and returns once all have left. For one task; dropped half-way it may be called again.
    pub(super) async fn end(&self) {
        self.0.has_ended.set(true);
        poll_fn(|context| {
            if self.0.users.get() == 0 {
                return Poll::Ready(());
            }
            self.0.waker.replace(Some(context.waker().clone()));
            Poll::Pending
        })
        .await
    }
}

impl Drop for FolderUser {
    fn drop(&mut self) {
        self.0.users.set(self.0.users.get() - 1);
        if self.0.users.get() == 0
            && let Some(waker) = self.0.waker.take()
        {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_lite::future::{block_on, poll_once};

    use super::*;

    #[test]
    fn a_folder_comes_out_of_use_when_its_last_user_leaves_and_lets_no_other_in() {
        block_on(async {
            let folder = FolderUse::default();
            let users = [folder.begin(), folder.begin()];
            assert!(users.iter().all(Option::is_some));
            let mut end = pin!(folder.end());
            assert!(poll_once(&mut end).await.is_none());
            assert!(folder.begin().is_none());
            let [first, second] = users;
            drop(first);
            assert!(poll_once(&mut end).await.is_none());
            drop(second);
            assert!(poll_once(&mut end).await.is_some());
        });
    }
}
