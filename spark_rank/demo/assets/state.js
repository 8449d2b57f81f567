// What the person did: items chosen, ratings in the order in which they were given, items that the
// person does not know. A state is never changed; every step makes a new one, and undo takes it back.

function emptyState() {
  return {chosen: [], ratings: [], unknown: []};
}

function withChosen(state, item) {
  if (state.chosen.includes(item)) return state;
  return {...state, chosen: [...state.chosen, item]};
}

// Returns the state with a rating; another rating of the same item keeps its place in the order.
function withRating(state, item, rating) {
  const place = state.ratings.findIndex(([rated]) => rated === item);
  if (place >= 0 && state.ratings[place][1] === rating) return state;
  const ratings = state.ratings.slice();
  if (place < 0) ratings.push([item, rating]);
  else ratings[place] = [item, rating];
  return {...withChosen(state, item), ratings};
}

function without(state, item) {
  return {
    ...state,
    chosen: state.chosen.filter((each) => each !== item),
    ratings: state.ratings.filter(([rated]) => rated !== item),
  };
}

function withUnknown(state, items) {
  return {...state, unknown: [...state.unknown, ...items]};
}

// The state now, and all before it.
class Steps {
  constructor() {
    this.states = [emptyState()];
  }

  get now() {
    return this.states[this.states.length - 1];
  }

  get canUndo() {
    return this.states.length > 1;
  }

  push(state) {
    if (state !== this.now) this.states.push(state);
  }

  undo() {
    if (this.canUndo) this.states.pop();
  }
}
