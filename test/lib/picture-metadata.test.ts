import sharp, { type Sharp } from "sharp";
import { describe, expect, it } from "vitest";
import { isStrippable, PictureDamaged, stripMetadata } from "../../src/lib/picture-metadata.js";

const SECRET = "Bletchley Park";
/** 52 degrees north: what a telephone writes into its pictures. */
const EXIF = { IFD0: { Copyright: SECRET, Make: SECRET }, IFD3: { GPSLatitudeRef: "N", GPSLatitude: "52/1 0/1 0/1" } };

/** 20 x 10 of three colours, held sideways, with a colour profile and everything that must go. */
function picture(): Sharp {
  const pixels = Buffer.from(Array.from({ length: 20 * 10 * 3 }, (_, index) => (index * 37) % 256));
  return sharp(pixels, { raw: { width: 20, height: 10, channels: 3 } })
    .withExif(EXIF)
    .withMetadata({ orientation: 6, icc: "p3", exif: EXIF });
}

const FORMATS: Readonly<Record<string, (source: Sharp) => Promise<Buffer>>> = {
  "image/jpeg": (source) => source.jpeg({ quality: 90 }).toBuffer(),
  "image/png": (source) => source.png().toBuffer(),
  "image/webp": (source) => source.webp({ lossless: true }).toBuffer(),
};

function pixelsOf(bytes: Buffer): Promise<Buffer> {
  return sharp(bytes, { animated: true }).raw().toBuffer();
}

function strip(bytes: Buffer, contentType: string): Buffer {
  return Buffer.concat(stripMetadata(bytes, contentType));
}

describe.each(Object.entries(FORMATS))("a picture as %s", (contentType, encode) => {
  it("loses its location and author, and no pixel", async () => {
    const original = await encode(picture());
    expect(original.includes(SECRET)).toBe(true);

    const stripped = strip(original, contentType);

    expect(stripped.includes(SECRET)).toBe(false);
    expect(stripped.includes("GPS")).toBe(false);
    expect(await pixelsOf(stripped)).toEqual(await pixelsOf(original));
    const [before, after] = [await sharp(original).metadata(), await sharp(stripped).metadata()];
    expect(after).toMatchObject({ format: before.format, width: 20, height: 10, orientation: 6 });
    expect(after.icc).toEqual(before.icc);
  });

  it("stays unchanged without metadata", async () => {
    const bare = await encode(sharp({ create: { width: 4, height: 4, channels: 3, background: "teal" } }));

    expect(await pixelsOf(strip(bare, contentType))).toEqual(await pixelsOf(bare));
    expect(strip(strip(bare, contentType), contentType)).toEqual(strip(bare, contentType));
  });

  it("is refused when it ends too soon, wherever that is", async () => {
    const original = await encode(picture());

    for (let length = 1; length < original.length; length += 7) {
      const cut = original.subarray(0, length);
      try {
        // A cut in the last part may be missed: its content is not read.
        expect(strip(cut, contentType).includes(SECRET)).toBe(false);
      } catch (error) {
        expect(error).toBeInstanceOf(PictureDamaged);
      }
    }
  });
});

describe("a moving picture", () => {
  it("keeps its frames", async () => {
    const frames = Buffer.alloc(8 * 24 * 3, 90).fill(200, 8 * 8 * 3, 8 * 16 * 3);
    const moving = await sharp(frames, { raw: { width: 8, height: 24, channels: 3, pageHeight: 8 } })
      .gif({ delay: [100, 100, 100] })
      .toBuffer();

    const stripped = strip(moving, "image/gif");

    expect((await sharp(stripped, { animated: true }).metadata()).pages).toBe((await sharp(moving, { animated: true }).metadata()).pages);
    expect(await pixelsOf(stripped)).toEqual(await pixelsOf(moving));
  });

  it("loses its comment", async () => {
    const plain = await sharp({ create: { width: 2, height: 2, channels: 3, background: "red" } })
      .gif()
      .toBuffer();
    const comment = Buffer.concat([Buffer.from([0x21, 0xfe, SECRET.length]), Buffer.from(SECRET), Buffer.from([0])]);
    // Before the trailer, the file's last byte.
    const commented = Buffer.concat([plain.subarray(0, -1), comment, plain.subarray(-1)]);

    const stripped = strip(commented, "image/gif");

    expect(stripped.includes(SECRET)).toBe(false);
    expect(await pixelsOf(stripped)).toEqual(await pixelsOf(plain));
  });
});

it("knows which files it can take apart", () => {
  expect(["image/jpeg", "image/png", "image/webp", "image/gif"].every(isStrippable)).toBe(true);
  expect(["image/svg+xml", "video/mp4", "constructor", ""].some(isStrippable)).toBe(false);
});
