/**
 * Version 1 with the two functions that version 2 corrects. Version 1 takes any object with a field `then` for a promise, such as
 * JSON that an upstream wrote.
 */
const helpers = require("promise-helpers-1");

const isPromise = (value) => typeof value?.then === "function";

/** Calls `begin` and then one of the others: at once, or when the promise that `begin` returned is settled. */
function handleMaybePromise(begin, onValue, onError, onEnd) {
  if (onEnd) return helpers.handleMaybePromise(begin, onValue, onError, onEnd);
  let value;
  try {
    value = begin();
    if (isPromise(value)) return helpers.unfakePromise(value.then(onValue, onError));
  } catch (error) {
    if (!onError) throw error;
    return onError(error);
  }
  return onValue(value);
}

module.exports = { ...helpers, isPromise, handleMaybePromise };
