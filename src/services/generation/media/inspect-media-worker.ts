/** Reads sound and video files in a thread of its own (see media-inspector.ts), one after the other as they are sent. */
import { parentPort } from "node:worker_threads";
import type { InspectionRequest } from "./media-inspector.js";
import { readAudio, readVideo } from "./read-media.js";

const port = parentPort;
port?.on("message", ({ kind, bytes }: InspectionRequest) => {
  const read = kind === "audio" ? readAudio(bytes) : readVideo(bytes);
  void read.then((facts) => port.postMessage(facts));
});
