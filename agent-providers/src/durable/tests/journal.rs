//! A journal in memory.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use agent_core::{Result, Step};
use futures::{FutureExt, future::BoxFuture};

use crate::durable::{
    Status,
    live::Live,
    turn::{Ask, Failure, Journal, ask, failure},
    types::Answer,
};

/// What outlives a process.
#[derive(Default)]
pub(super) struct Book {
    /// Names, and results as JSON.
    pub(super) steps: Vec<(String, Result<String, Failure>)>,
    answers: Vec<Result<Answer, Failure>>,
    pub(super) shown: Vec<Status>,
    /// What people answer, in order; when there is nothing left, they cancel.
    people: VecDeque<Answer>,
}

/// Where a process dies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Death {
    /// After the step of this number was made, before it is in the journal.
    Before(usize),
    /// After it is in the journal.
    After(usize),
}

pub(super) struct Memory {
    book: Arc<Mutex<Book>>,
    steps: usize,
    answers: usize,
    death: Option<Death>,
    /// The step before which the turn is cancelled.
    pub(super) cancelled: Option<usize>,
}

impl Memory {
    pub(super) fn new(book: &Arc<Mutex<Book>>, death: Option<Death>) -> Self {
        Self { book: book.clone(), steps: 0, answers: 0, death, cancelled: None }
    }

    async fn die(&self, here: Death) {
        if self.death == Some(here) {
            std::future::pending::<()>().await;
        }
    }
}

impl Journal for Memory {
    fn take<'a>(&'a mut self, name: String, live: &'a Arc<Live>, asked: Ask) -> BoxFuture<'a, Result<Step, Failure>> {
        self.step(name, live, asked).boxed()
    }

    fn answer<'a>(&'a mut self, status: &'a Status) -> BoxFuture<'a, Result<Answer, Failure>> {
        self.show(status);
        let mut book = self.book.lock().unwrap();
        if self.answers == book.answers.len() {
            let answer = book.people.pop_front().ok_or(Failure::Cancelled);
            book.answers.push(answer);
        }
        self.answers += 1;
        std::future::ready(book.answers[self.answers - 1].clone()).boxed()
    }

    fn show(&mut self, status: &Status) {
        self.book.lock().unwrap().shown.push(status.clone());
    }
}

impl Memory {
    async fn step(&mut self, name: String, live: &Arc<Live>, asked: Ask) -> Result<Step, Failure> {
        let at = self.steps;
        self.steps += 1;
        if at == self.book.lock().unwrap().steps.len() {
            let result = if self.cancelled.take_if(|cancelled| *cancelled == at).is_some() {
                Err(Failure::Cancelled)
            } else {
                let step = ask(live.clone(), asked).await;
                step.map(|step| serde_json::to_string(&step).unwrap()).map_err(|error| failure(&error))
            };
            self.die(Death::Before(at)).await;
            self.book.lock().unwrap().steps.push((name.clone(), result));
            self.die(Death::After(at)).await;
        }
        let (kept, result) = self.book.lock().unwrap().steps[at].clone();
        assert_eq!(kept, name, "the same steps in the same order");
        result.map(|step| serde_json::from_str(&step).unwrap())
    }
}

pub(super) fn book(people: impl IntoIterator<Item = Answer>) -> Arc<Mutex<Book>> {
    Arc::new(Mutex::new(Book { people: people.into_iter().collect(), ..Book::default() }))
}
