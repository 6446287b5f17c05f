mod answers;
mod requests;
