/** Arithmetic on 16-bit samples. */

/** The same sound at another sample rate, by cubic interpolation. */
export function resample(samples: Int16Array, from: number, to: number): Int16Array {
  if (from === to || samples.length === 0) return samples;
  const result = new Int16Array(Math.round((samples.length * to) / from));
  const step = from / to;
  for (let index = 0; index < result.length; index += 1) {
    const position = index * step;
    const whole = Math.floor(position);
    const part = position - whole;
    const before = samples[Math.max(0, whole - 1)] ?? 0;
    const here = samples[whole] ?? 0;
    const next = samples[whole + 1] ?? here;
    const after = samples[whole + 2] ?? next;
    const slope = (next - before) / 2;
    const nextSlope = (after - here) / 2;
    const cubic = 2 * (here - next) + slope + nextSlope;
    const square = 3 * (next - here) - 2 * slope - nextSlope;
    result[index] = clip(((cubic * part + square) * part + slope) * part + here);
  }
  return result;
}

const WINDOW_SECONDS = 0.03;
const SEARCH_SECONDS = 0.008;

/**
 * The same sound `factor` times as fast at the same pitch (WSOLA: windows are moved together or apart, each by a little to
 * where it fits best onto the one before).
 */
export function changeTempo(samples: Int16Array, factor: number, sampleRate: number): Int16Array {
  const half = Math.round((WINDOW_SECONDS * sampleRate) / 2);
  const search = Math.round(SEARCH_SECONDS * sampleRate);
  if (factor === 1 || samples.length < half * 4) return samples;
  const length = Math.round(samples.length / factor);
  const mixed = new Float32Array(length + half * 2);
  let from = 0;
  for (let to = 0; to + half * 2 <= mixed.length; to += half) {
    for (let index = 0; index < half * 2; index += 1) {
      const weight = 0.5 - 0.5 * Math.cos((Math.PI * index) / half);
      mixed[to + index] = (mixed[to + index] ?? 0) + (samples[from + index] ?? 0) * weight;
    }
    from = bestMatch(samples, from + half, Math.round((to + half) * factor), half, search);
  }
  return Int16Array.from(mixed.subarray(0, length), clip);
}

/** The position near `wanted` that best continues the previous samples. */
function bestMatch(samples: Int16Array, natural: number, wanted: number, length: number, search: number): number {
  let best = wanted;
  let bestScore = Number.NEGATIVE_INFINITY;
  for (let start = Math.max(0, wanted - search); start <= wanted + search; start += 2) {
    let score = 0;
    for (let index = 0; index < length; index += 4) score += (samples[natural + index] ?? 0) * (samples[start + index] ?? 0);
    if (score > bestScore) {
      bestScore = score;
      best = start;
    }
  }
  return best;
}

/** Every second sample, each the mean of two: half the sample rate. */
export function halve(samples: Int16Array): Int16Array {
  const result = new Int16Array(samples.length >> 1);
  for (let index = 0; index < result.length; index += 1) result[index] = ((samples[index * 2] ?? 0) + (samples[index * 2 + 1] ?? 0)) >> 1;
  return result;
}

export function clip(value: number): number {
  return Math.max(-32_768, Math.min(32_767, Math.round(value)));
}
