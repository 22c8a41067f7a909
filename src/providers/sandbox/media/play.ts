/** Music: a tune of the asked length in the asked format. */
import { openAudioFile } from "./audio-file.js";
import type { BytesResult, JobRun, MusicJob } from "./jobs.js";
import { Random } from "./random.js";
import { halve } from "./samples.js";
import { composeTune, MUSIC_RATE, renderTune } from "./tune.js";

const MUSIC_BITRATE = 128_000;
/** A step of the work, in seconds of sound. */
const STEP_SECONDS = 2;

export async function* play({ prompt, seed, seconds, format }: MusicJob): JobRun<BytesResult> {
  const notes = composeTune(prompt, seconds, new Random("music", prompt, seed));
  // Samples without a container are 24,000 a second, as those of speech.
  const isBare = format === "pcm";
  const tags = { title: prompt.slice(0, 200) || "Sandbox tune", artist: "Sluice sandbox", comment: `Composed by rules, seed ${seed}` };
  const file = await openAudioFile({ format, sampleRate: MUSIC_RATE, bitrate: MUSIC_BITRATE, tags });
  try {
    for (let from = 0; from < seconds; from += STEP_SECONDS) {
      const samples = renderTune(notes, from, Math.min(seconds, from + STEP_SECONDS), seconds);
      await file.add(isBare ? halve(samples) : samples);
      yield { percent: Math.floor((from / seconds) * 100) };
    }
    await file.finish();
    return { bytes: file.take(), durationMs: Math.round(seconds * 1_000) };
  } finally {
    await file.close();
  }
}
