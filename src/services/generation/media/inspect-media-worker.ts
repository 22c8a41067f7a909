/** Reads audio and video files in its own thread (see media-inspector.ts), one after another. */
import { parentPort } from "node:worker_threads";
import type { InspectionRequest } from "./media-inspector.js";
import { readAudio, readVideo } from "./read-media.js";

const port = parentPort;
port?.on("message", ({ kind, bytes }: InspectionRequest) => {
  const read = kind === "audio" ? readAudio(bytes) : readVideo(bytes);
  void read.then((facts) => port.postMessage(facts));
});
