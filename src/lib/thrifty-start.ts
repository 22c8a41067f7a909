/** What V8 is told of objects that are made, and of when to optimise: little while a process starts, what a load needs once it serves. */
import { setFlagsFromString } from "node:v8";

/**
 * To be called before anything else is loaded; what it answers, when the process serves.
 *
 * 1. V8 makes what has outlived collections before directly in its old space, where it stays until all of the heap is looked at, and with it
 *    whatever it leads to. Under load what belongs to a request outlives a collection of the young space and ends a moment later, so that every
 *    second request was kept for the whole heap's collection, which cost a sixth of a stream's processor time. Nothing is made there now.
 * 2. What a start makes mostly stays, and V8 takes that for a reason to give new objects 32 MB, which an idle process never fills nor gives
 *    back. The young space keeps its first size until the process serves. From then on it grows at once: by doubling, V8 would take so long to make
 *    up for the start that a load of large answers costs it twice the processor time, most of it in collections that come too soon.
 * 3. WebAssembly is optimised late from the moment on at which the database is opened (store/database.ts). What is first used by a load, such
 *    as the parser of upstreams' answers, is optimised as soon as V8 would.
 * 4. Large answers pass as bytes outside of the heap, and most of them are garbage of the young space. V8 used to collect that when enough of
 *    them had been made; versions from 13 on look at all of the heap for every 64 MB instead, which took a third of the processor time of a spoken
 *    answer. The bytes count as a part of the heap now, whose growth says when all of it is looked at, and version 13, which lets three times
 *    as many gather in the young space as others do, is told their bound.
 */
export function startThriftily(): () => void {
  setFlagsFromString("--no-allocation-site-pretenuring");
  setFlagsFromString("--semi-space-growth-factor=1");
  return () => {
    setFlagsFromString("--semi-space-growth-factor=16");
    setFlagsFromString("--wasm-tiering-budget=1800000");
    if (V8_MAJOR >= 13) setFlagsFromString("--external-memory-accounted-in-global-limit");
    if (V8_MAJOR === 13) setFlagsFromString("--scavenger-max-new-space-capacity-mb=8");
  };
}

/** Of another version a flag may be unknown, which V8 would complain of on standard error. */
const V8_MAJOR = Number.parseInt(process.versions.v8, 10);
