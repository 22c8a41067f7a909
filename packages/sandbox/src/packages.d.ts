/** Types of packages without any, as far as the sandbox uses them. */

declare module "@echogarden/espeak-ng-emscripten" {
  export interface Synthesizer {
    /** 0 when there is such a voice: a language, and after `+` a variant. It also resets rate and pitch. */
    set_voice(name: string): number;
    /** Words per minute, 80 to 450. */
    set_rate(wordsPerMinute: number): void;
    /** 0 to 99, 50 is the voice's own. */
    set_pitch(pitch: number): void;
    /** How lively the melody is: 0 to 99, 50 is the voice's own. */
    set_range(range: number): void;
    /** Samples come at 22,050 a second; true stops it. */
    synthesize(text: string, onSamples: (samples: Int16Array | null) => boolean): void;
  }

  export default function load(): Promise<{ readonly eSpeakNGWorker: new () => Synthesizer }>;
}
