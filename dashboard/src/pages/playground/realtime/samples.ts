/** Audio of realtime sessions: 16-bit little-endian samples at 24 kHz, in base64. */
export const RATE = 24_000;

/** Converts samples of a microphone, between -1 and 1, from its rate. */
export function encode(samples: Float32Array, rate: number): string {
  const count = Math.floor((samples.length * RATE) / rate);
  const bytes = new DataView(new ArrayBuffer(count * 2));
  for (let at = 0; at < count; at += 1) {
    const place = (at * rate) / RATE;
    const before = samples[Math.floor(place)] ?? 0;
    const after = samples[Math.ceil(place)] ?? before;
    const value = before + (after - before) * (place % 1);
    bytes.setInt16(at * 2, Math.round(Math.max(-1, Math.min(1, value)) * 0x7f_ff), true);
  }
  let text = "";
  for (const byte of new Uint8Array(bytes.buffer)) text += String.fromCharCode(byte);
  return btoa(text);
}

export function decode(base64: string): Float32Array<ArrayBuffer> {
  const text = atob(base64);
  const samples = new Float32Array(Math.floor(text.length / 2));
  for (let at = 0; at < samples.length; at += 1) {
    const value = text.charCodeAt(at * 2) | (text.charCodeAt(at * 2 + 1) << 8);
    samples[at] = (value > 0x7f_ff ? value - 0x1_00_00 : value) / 0x80_00;
  }
  return samples;
}
