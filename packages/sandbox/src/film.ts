/** Videos: a moving scene, encoded as H.264 frame by frame, with a tune when audio is requested. */
import {
  AudioSample,
  AudioSampleSource,
  BufferSource,
  BufferTarget,
  EncodedPacketSink,
  EncodedVideoPacketSource,
  Input,
  MP4,
  Mp4OutputFormat,
  Output,
} from "mediabunny";
import type { Sharp } from "sharp";
import type { BytesResult, JobRun, VideoJob } from "../../../src/providers/sandbox/media/jobs.js";
import { loadAacEncoder } from "./audio-file.js";
import { drawCaption } from "./caption.js";
import { choosePalette } from "./palette.js";
import { Random } from "./random.js";
import { makeScene } from "./scenes.js";
import { coverWith, loadSharp, type Size } from "./sources.js";
import { composeTune, MUSIC_RATE, renderTune } from "./tune.js";

const FRAMES_PER_SECOND = 24;
/** Frames of one step: between them other jobs of the thread have their turn. */
const FRAMES_PER_STEP = 4;
/** 10 to 51, the lower the better. */
const QUANTIZATION = 26;
/** 0 to 10, the higher the faster. */
const ENCODER_SPEED = 8;
const AUDIO_BITRATE = 96_000;
/** Radius of the light that moves over a source picture, of its shorter side. */
const SPOT_RADIUS = 0.3;

export async function* film(job: VideoJob): JobRun<BytesResult> {
  const frameAt = await prepareFrames(job);
  const frames = Math.round(job.seconds * FRAMES_PER_SECOND);
  const encoder = await openEncoder(job);
  let silent: Uint8Array;
  try {
    for (let frame = 0; frame < frames; frame += 1) {
      encoder.addFrameRgba(await frameAt(frame / FRAMES_PER_SECOND));
      if (frame % FRAMES_PER_STEP === 0) yield { percent: Math.floor((frame / frames) * 95) };
    }
    encoder.finalize();
    silent = encoder.FS.readFile(encoder.outputFilename).slice();
    encoder.FS.unlink(encoder.outputFilename);
  } finally {
    encoder.delete();
  }
  yield { percent: 96 };
  const durationMs = Math.round((frames / FRAMES_PER_SECOND) * 1_000);
  return { bytes: await assemble(silent, job, frames / FRAMES_PER_SECOND), durationMs };
}

let filesMade = 0;

async function openEncoder({ width, height }: Size) {
  const { default: library } = await import("h264-mp4-encoder");
  const encoder = await library.createH264MP4Encoder();
  filesMade += 1;
  // All encoders of a thread share one file system.
  encoder.outputFilename = `${filesMade}.mp4`;
  encoder.width = width;
  encoder.height = height;
  encoder.frameRate = FRAMES_PER_SECOND;
  encoder.groupOfPictures = FRAMES_PER_SECOND;
  encoder.quantizationParameter = QUANTIZATION;
  encoder.speed = ENCODER_SPEED;
  encoder.initialize();
  return encoder;
}

/** The picture at a time in seconds, as RGBA: the scene, or the first source with its light moving over it, and the prompt. */
async function prepareFrames(job: VideoJob): Promise<(seconds: number) => Promise<Buffer>> {
  const sharp = await loadSharp();
  const size: Size = { width: job.width, height: job.height };
  const random = new Random("video", job.prompt, job.seed);
  const palette = choosePalette(job.prompt, random);
  const scene = makeScene(job.prompt, size, palette, random);
  const [source] = job.sources;
  const note = `Sluice sandbox · ${source === undefined ? "filmed by rules" : "from a picture"} · seed ${job.seed}`;
  const caption = drawCaption(job.prompt || "(no prompt)", note, size);
  const total = job.seconds;
  const bar = (seconds: number) =>
    `<rect x="0" y="${job.height - 4}" width="${Math.round((job.width * seconds) / total)}" height="4" fill="${palette.accents[0]}"/>`;
  const raw = (picture: Sharp) => picture.ensureAlpha().raw().toBuffer();
  if (source === undefined) {
    return async (seconds) => raw(sharp(svg(size, scene(seconds) + caption + bar(seconds))));
  }
  const ground = await raw(sharp(await coverWith(source, size)));
  const spot = (seconds: number) => {
    const [x, y] = [job.width * (0.5 + 0.38 * Math.cos(seconds * 1.2)), job.height * (0.4 + 0.26 * Math.sin(seconds * 1.7))];
    const radius = Math.min(job.width, job.height) * SPOT_RADIUS;
    return `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${radius.toFixed(1)}" fill="${palette.light}" fill-opacity=".28"/>`;
  };
  return async (seconds) =>
    raw(sharp(ground, { raw: { ...size, channels: 4 } }).composite([{ input: svg(size, spot(seconds) + caption + bar(seconds)) }]));
}

function svg({ width, height }: Size, content: string): Buffer {
  return Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${content}</svg>`,
  );
}

/** The file that is sent: pictures and sound side by side, its index first, so that a player can begin before it has all. */
async function assemble(silent: Uint8Array, job: VideoJob, seconds: number): Promise<Uint8Array> {
  const input = new Input({ source: new BufferSource(silent), formats: [MP4] });
  const track = await input.getPrimaryVideoTrack();
  const decoderConfig = await track?.getDecoderConfig();
  if (!track || !decoderConfig) throw new Error("The encoder wrote no pictures.");
  const target = new BufferTarget();
  const output = new Output({ format: new Mp4OutputFormat({ fastStart: "in-memory" }), target });
  const pictures = new EncodedVideoPacketSource("avc");
  output.addVideoTrack(pictures, { frameRate: FRAMES_PER_SECOND });
  await loadAacEncoder();
  const sound = job.hasAudio ? new AudioSampleSource({ codec: "aac", bitrate: AUDIO_BITRATE }) : null;
  if (sound) output.addAudioTrack(sound);
  output.setMetadataTags({ title: job.prompt.slice(0, 200), comment: `Filmed by the Sluice sandbox, seed ${job.seed}` });
  await output.start();
  // The encoder's own file does not say where a player can begin.
  const packets = new EncodedPacketSink(track).packets(undefined, undefined, { verifyKeyPackets: true });
  for await (const packet of packets) await pictures.add(packet, { decoderConfig });
  if (sound) await addTune(sound, job, seconds);
  await output.finalize();
  input.dispose();
  return new Uint8Array(target.buffer ?? new ArrayBuffer(0));
}

async function addTune(sound: AudioSampleSource, { prompt, seed }: VideoJob, seconds: number): Promise<void> {
  const notes = composeTune(prompt, seconds, new Random("music", prompt, seed));
  for (let from = 0; from < seconds; from += 1) {
    const samples = renderTune(notes, from, Math.min(seconds, from + 1), seconds);
    const data = new Uint8Array(samples.buffer as ArrayBuffer);
    const sample = new AudioSample({ data, format: "s16", numberOfChannels: 1, sampleRate: MUSIC_RATE, timestamp: from });
    await sound.add(sample);
    sample.close();
  }
}
