import helpers from "./index.cjs";

export const {
  createDeferredPromise,
  fakePromise,
  fakeRejectPromise,
  handleMaybePromise,
  isActualPromise,
  isPromise,
  iterateAsync,
  iterateAsyncVoid,
  mapAsyncIterator,
  mapMaybePromise,
  promiseLikeFinally,
  unfakePromise,
} = helpers;
