/** Media files looked at from outside: by ffprobe where it is installed, and by their first bytes and headers. */
import { execFile, execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

export const hasFfprobe = isInstalled("ffprobe");
export const hasFfmpeg = isInstalled("ffmpeg");

/** For names of tests that need it: says why they are left out. */
export const withFfprobe = hasFfprobe ? "" : " (left out: ffprobe is not installed)";

function isInstalled(program: string): boolean {
  try {
    execFileSync(program, ["-version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

export interface ProbedStream {
  readonly codec_name: string;
  readonly codec_type: "video" | "audio";
  readonly width?: number;
  readonly height?: number;
  readonly pix_fmt?: string;
  readonly sample_rate?: string;
  readonly channels?: number;
  readonly nb_read_frames?: string;
}

export interface Probed {
  readonly streams: readonly ProbedStream[];
  readonly format: { readonly format_name: string; readonly duration?: string; readonly tags?: Readonly<Record<string, string>> };
  /** What ffprobe complains about. */
  readonly complaints: string;
}

/** Reads every frame: a file that breaks off in the middle shows. */
export async function probe(bytes: Uint8Array, ending: string): Promise<Probed> {
  return inFile(bytes, ending, async (file) => {
    const args = ["-v", "error", "-count_frames", "-show_streams", "-show_format", "-of", "json", file];
    const { stdout, stderr } = await promisify(execFile)("ffprobe", args);
    return { ...JSON.parse(stdout), complaints: stderr };
  });
}

/** The sound as 16-bit samples of one channel. */
export async function decodeSound(bytes: Uint8Array, ending: string, sampleRate = 24_000): Promise<Int16Array> {
  return inFile(bytes, ending, async (file) => {
    const args = ["-v", "error", "-i", file, "-f", "s16le", "-ac", "1", "-ar", String(sampleRate), "-"];
    const { stdout } = await promisify(execFile)("ffmpeg", args, { encoding: "buffer", maxBuffer: 64 * 1024 * 1024 });
    return new Int16Array(new Uint8Array(stdout).buffer);
  });
}

/** One picture of a film, as PNG. */
export async function frameOf(bytes: Uint8Array, seconds: number): Promise<Uint8Array> {
  return inFile(bytes, "mp4", async (file) => {
    const args = ["-v", "error", "-ss", String(seconds), "-i", file, "-frames:v", "1", "-f", "image2pipe", "-c:v", "png", "-"];
    const { stdout } = await promisify(execFile)("ffmpeg", args, { encoding: "buffer", maxBuffer: 64 * 1024 * 1024 });
    return new Uint8Array(stdout);
  });
}

/** The loudness of samples, 0 to 1: 0 is silence. */
export function loudnessOf(samples: Int16Array): number {
  return Math.sqrt(samples.reduce((sum, sample) => sum + (sample / 32_768) ** 2, 0) / Math.max(1, samples.length));
}

async function inFile<Read>(bytes: Uint8Array, ending: string, read: (file: string) => Promise<Read>): Promise<Read> {
  const folder = await mkdtemp(join(tmpdir(), "sluice-media-"));
  try {
    const file = join(folder, `file.${ending}`);
    await writeFile(file, bytes);
    return await read(file);
  } finally {
    await rm(folder, { recursive: true });
  }
}
