/** Words as tones: 16-bit samples at 24 kHz, a tenth of a second for each word. */
const SAMPLES_PER_SECOND = 24_000;
const SAMPLES_PER_WORD = SAMPLES_PER_SECOND / 10;
const LOUDNESS = 6_000;
/** A minute at most. */
const WORDS_MAX = 600;
/** A pentatonic scale, in hertz. */
const PITCHES = [262, 294, 330, 392, 440] as const;

/** The same words sound the same. Each tone swells and fades, so that nothing clicks. */
export function toneOf(words: string): Buffer {
  const all = words.split(/\s+/).filter(Boolean).slice(0, WORDS_MAX);
  const samples = Buffer.alloc(all.length * SAMPLES_PER_WORD * 2);
  for (const [index, word] of all.entries()) {
    const pitch = PITCHES[word.length % PITCHES.length] ?? PITCHES[0];
    for (let step = 0; step < SAMPLES_PER_WORD; step += 1) {
      const swell = Math.sin((Math.PI * step) / SAMPLES_PER_WORD);
      const value = LOUDNESS * swell * Math.sin((2 * Math.PI * pitch * step) / SAMPLES_PER_SECOND);
      samples.writeInt16LE(Math.round(value), (index * SAMPLES_PER_WORD + step) * 2);
    }
  }
  return samples;
}
