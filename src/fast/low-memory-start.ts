/** Tunes V8's allocation and optimisation: little memory at the start, throughput once the process serves. */
import { setFlagsFromString } from "node:v8";
import { hasFastPaths } from "./fast-paths.js";

/**
 * Call before anything else is loaded; call the returned function when the process serves.
 *
 * 1. V8 allocates objects of kinds that survived earlier collections directly in its old space, where they stay until a full
 *    collection, with everything they refer to. Under load, data of a request survives a young collection and dies a moment
 *    later, so that every second request waited for a full collection, at a sixth of a stream's processor time. This
 *    pretenuring is switched off.
 * 2. Most objects of the start survive, so V8 would grow the young space to 32 MB, which an idle process never fills nor
 *    returns. The young space keeps its first size until the process serves, and then grows at once: growing by doubling
 *    costs a load of large answers twice the processor time, most of it in early collections.
 * 3. WebAssembly is optimised late from the moment at which the database is opened (store/database.ts). Code that is first
 *    used under load, such as the parser of upstreams' answers, is optimised as soon as V8 would.
 * 4. Large answers are bytes outside of the heap, mostly garbage of the young space. V8 before 13 collects the young space
 *    once enough of them were allocated; from 13 on it runs a full collection for every 64 MB, which took a third of the
 *    processor time of a spoken answer. These bytes count as part of the heap here, whose growth triggers full collections.
 *    Version 13 lets three times as many gather in the young space as others do, so it gets a bound.
 */
export function startWithLowMemory(): () => void {
  if (!hasFastPaths()) return () => {};
  setFlagsFromString("--no-allocation-site-pretenuring");
  setFlagsFromString("--semi-space-growth-factor=1");
  return () => {
    setFlagsFromString("--semi-space-growth-factor=16");
    setFlagsFromString("--wasm-tiering-budget=1800000");
    if (V8_MAJOR >= 13) setFlagsFromString("--external-memory-accounted-in-global-limit");
    if (V8_MAJOR === 13) setFlagsFromString("--scavenger-max-new-space-capacity-mb=8");
  };
}

/** Another version may lack a flag, which V8 would report on standard error. */
const V8_MAJOR = Number.parseInt(process.versions.v8, 10);
