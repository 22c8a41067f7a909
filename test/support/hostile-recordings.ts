/** MP4 files of a few bytes whose tables claim more than any file holds. */

export function box(type: string, ...content: readonly Uint8Array[]): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(8 + content.reduce((sum, { byteLength }) => sum + byteLength, 0));
  head.write(type, 4, "latin1");
  return Buffer.concat([head, ...content]);
}

export function numbers(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, index * 4);
  return bytes;
}

const RATE = 44_100;
const SAMPLE_ENTRY = box(
  "mp4a",
  // Reserved, the first data reference; two channels of 16 bits.
  Buffer.from("000000000000000100000000000000000002001000000000", "hex"),
  numbers(RATE * 65_536),
  // Who decodes it: AAC, low complexity, 44.1 kHz, two channels.
  box("esds", Buffer.from("00000000031900010004114015000000000000000000000005021210060102", "hex")),
);

export interface Claims {
  /** Of the tables of times and of sizes. */
  readonly samples?: number;
  readonly sampleBytes?: number;
  readonly samplesPerChunk?: number;
  readonly firstChunk?: number;
  /** Further boxes of the sample table. */
  readonly tables?: readonly Buffer[];
  /** Of sound; zeros. */
  readonly dataBytes?: number;
}

/** One track of AAC; the defaults describe one sample of one byte. */
export function mp4Claiming({
  samples = 1,
  sampleBytes = 1,
  samplesPerChunk = samples,
  firstChunk = 1,
  tables = [],
  dataBytes = 1_000,
}: Claims): Buffer {
  const head = box("ftyp", Buffer.from("M4A \0\0\0\0isomM4A ", "latin1"));
  const data = box("mdat", Buffer.alloc(dataBytes));
  const matrix = numbers(65_536, 0, 0, 0, 65_536, 0, 0, 0, 0x40000000);
  const table = box(
    "stbl",
    box("stsd", numbers(0, 1), SAMPLE_ENTRY),
    box("stts", numbers(0, 1, samples, 1_024)),
    box("stsc", numbers(0, 1, firstChunk, samplesPerChunk, 1)),
    box("stsz", numbers(0, sampleBytes, samples)),
    box("stco", numbers(0, 1, head.byteLength + 8)),
    ...tables,
  );
  const media = box(
    "mdia",
    box("mdhd", numbers(0, 0, 0, RATE, samples, 0x55c40000)),
    box("hdlr", numbers(0, 0), Buffer.from("soun", "latin1"), Buffer.alloc(13)),
    box("minf", box("smhd", numbers(0, 0)), box("dinf", box("dref", numbers(0, 1), box("url ", numbers(1)))), table),
  );
  const track = box("trak", box("tkhd", numbers(7, 0, 0, 1, 0, samples, 0, 0, 0, 0x01000000), matrix, numbers(0, 0)), media);
  const movie = box("mvhd", numbers(0, 0, 0, RATE, samples, 65_536, 0x01000000, 0, 0), matrix, Buffer.alloc(24), numbers(2));
  return Buffer.concat([head, data, box("moov", movie, track)]);
}

/** 1.6 kB, four billion samples. */
export function fourBillionSamples(): Buffer {
  return mp4Claiming({ samples: 0xffff_ffff });
}
