/** Finds the packages of the sandbox's media, which an installation may leave out (packages/sandbox). */
import { createRequire } from "node:module";

export interface SandboxPackages {
  /** Codecs and a typeface: images, videos, speech, music and transcriptions need them. */
  readonly hasMedia: boolean;
  /** The speech synthesizer. */
  readonly hasVoice: boolean;
}

export function findSandboxPackages(): SandboxPackages {
  return { hasMedia: isInstalled("@sluice/sandbox/package.json"), hasVoice: isInstalled("@echogarden/espeak-ng-emscripten") };
}

function isInstalled(file: string): boolean {
  try {
    createRequire(import.meta.url).resolve(file);
    return true;
  } catch {
    return false;
  }
}
