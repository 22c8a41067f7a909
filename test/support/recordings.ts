/** Small recordings, made as they are needed: a tone as 16-bit mono WAV. */

const RATE = 8_000;
const HEADER_BYTES = 44;

/** As long as it says, to the millisecond. */
export function recording(seconds: number, options: { readonly hertz?: number } = {}): Buffer {
  const { hertz = 440 } = options;
  const samples = Math.round(seconds * RATE);
  const wav = Buffer.alloc(HEADER_BYTES + samples * 2);
  wav.write("RIFF", 0);
  wav.writeUInt32LE(wav.length - 8, 4);
  wav.write("WAVEfmt ", 8);
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(RATE, 24);
  wav.writeUInt32LE(RATE * 2, 28);
  wav.writeUInt16LE(2, 32);
  wav.writeUInt16LE(16, 34);
  wav.write("data", 36);
  wav.writeUInt32LE(samples * 2, 40);
  for (let index = 0; index < samples; index += 1) {
    wav.writeInt16LE(Math.round(8_000 * Math.sin((2 * Math.PI * hertz * index) / RATE)), HEADER_BYTES + index * 2);
  }
  return wav;
}

/** With a header that was written before the length was known, as recorders that stream do. */
export function streamedRecording(seconds: number): Buffer {
  const wav = recording(seconds);
  wav.writeUInt32LE(0xffff_ffff, 4);
  wav.writeUInt32LE(0xffff_ffff, 40);
  return wav;
}
