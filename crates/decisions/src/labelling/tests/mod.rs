mod choices;
mod pools;
mod states;
