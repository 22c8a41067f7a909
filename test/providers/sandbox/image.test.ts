import { fileTypeFromBuffer } from "file-type";
import sharp from "sharp";
import { describe, expect, it } from "vitest";
import type { ImageCall, InputFile } from "../../../src/providers/media.js";
import { imageCall, openSandbox } from "../../support/sandbox-media.js";

const SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/></svg>';

const { image } = openSandbox({ totalMs: 20_000 });

async function draw(call: Parameters<typeof imageCall>[0]): Promise<Uint8Array> {
  const { images } = await image.generate(imageCall(call));
  const [first] = images;
  if (!first || images.length !== 1) throw new Error(`${images.length} pictures came.`);
  return first.bytes;
}

/** How far apart two pictures are, 0 to 255 for each channel of each pixel. */
async function difference(one: Uint8Array, other: Uint8Array): Promise<number> {
  const [first, second] = await Promise.all([one, other].map((bytes) => sharp(bytes).flatten().raw().toBuffer()));
  if (!first || !second || first.length !== second.length) throw new Error("The pictures are not of one size.");
  return first.reduce((sum, value, index) => sum + Math.abs(value - (second[index] ?? 0)), 0) / first.length;
}

async function plain(background: string, width = 64, height = 64): Promise<InputFile> {
  const bytes = await sharp({ create: { width, height, channels: 3, background } })
    .png()
    .toBuffer();
  return { bytes: new Uint8Array(bytes), contentType: "image/png", name: "plain.png" };
}

describe("a sandbox picture", () => {
  it.each([
    ["jpeg", "image/jpeg", 64, 64],
    ["png", "image/png", 123, 77],
    ["webp", "image/webp", 300, 64],
  ] as const)("is a %s of exactly the requested size", async (format, type, width, height) => {
    const { images, usage } = await image.generate(imageCall({ prompt: "A boat on the sea", format, size: { width, height } }));

    const [made] = images;
    expect(made?.contentType).toBe(type);
    expect(await fileTypeFromBuffer(made?.bytes ?? new Uint8Array())).toMatchObject({ mime: type });
    expect(await sharp(made?.bytes).metadata()).toMatchObject({ format, width, height });
    expect(usage).toMatchObject({ inputTextTokens: 5, outputImageTokens: Math.ceil(width / 32) * Math.ceil(height / 32) });
  });

  it("is JPEG of 1024 pixels a side by default", async () => {
    const bytes = await draw({ prompt: "hills", size: null });

    expect(await sharp(bytes).metadata()).toMatchObject({ format: "jpeg", width: 1_024, height: 1_024 });
  });

  it("is the same for the same prompt, seed and size, and another for another seed or prompt", async () => {
    const ask = { prompt: "A forest at night", seed: 7, format: "png" } as const;
    const [one, again, other, elsewhere] = await Promise.all([
      draw(ask),
      draw(ask),
      draw({ ...ask, seed: 8 }),
      draw({ ...ask, prompt: "A city" }),
    ]);

    expect(Buffer.compare(one, again)).toBe(0);
    expect(await difference(one, other)).toBeGreaterThan(3);
    expect(await difference(one, elsewhere)).toBeGreaterThan(3);
  });

  it.each(["the sea", "a city street", "a forest", "space", "mountain hills", "bauhaus pattern"])(
    "of %s is a picture, not one colour",
    async (prompt) => {
      const { channels } = await sharp(await draw({ prompt, format: "png", size: { width: 200, height: 150 } })).stats();

      expect(Math.max(...channels.slice(0, 3).map(({ stdev }) => stdev))).toBeGreaterThan(20);
    },
  );

  it("writes the prompt into it", async () => {
    const size = { width: 400, height: 300 };
    const caption = { left: 20, top: 220, width: 360, height: 70 };
    const whitest = async (prompt: string) => {
      const region = sharp(await draw({ prompt, format: "png", size }))
        .extract(caption)
        .greyscale()
        .raw();
      return (await region.toBuffer()).filter((value) => value > 235).length;
    };

    const [short, long] = await Promise.all([whitest("hill"), whitest("hill with a long description that goes on for many words")]);

    expect(short).toBeGreaterThan(40);
    expect(long).toBeGreaterThan(short * 3);
  });

  it("draws characters of markup as text", async () => {
    const bytes = await draw({ prompt: '<svg onload="x"> & ]]> \u0000\u202e 你好 🙂 ', format: "png" });

    expect(await sharp(bytes).metadata()).toMatchObject({ width: 96, height: 64 });
  });

  it("draws the requested number, each with the next seed", async () => {
    const { images } = await image.generate(imageCall({ prompt: "sea", count: 2, seed: 4, format: "png" }));

    const next = await draw({ prompt: "sea", seed: 5, format: "png" });
    expect(images).toHaveLength(2);
    expect(Buffer.compare(images[1]?.bytes ?? new Uint8Array(), next)).toBe(0);
  });

  it("has a transparent background on request", async () => {
    const bytes = await draw({ prompt: "A logo", isTransparent: true });
    const corner = await sharp(bytes).extract({ left: 0, top: 0, width: 4, height: 4 }).raw().toBuffer();
    const { warnings } = await image.generate(imageCall({ prompt: "A logo", isTransparent: true, format: "jpeg" }));

    expect(await sharp(bytes).metadata()).toMatchObject({ format: "png", hasAlpha: true });
    expect(corner.filter((_, index) => index % 4 === 3).every((alpha) => alpha === 0)).toBe(true);
    expect(warnings).toEqual(["JPEG has no transparency."]);
  });

  it("is opaque by default", async () => {
    expect(await sharp(await draw({ prompt: "A logo", format: "png" })).metadata()).toMatchObject({ hasAlpha: false });
  });

  it("warns of options without an effect", async () => {
    const { warnings } = await image.generate(imageCall({ prompt: "sea", negativePrompt: "fish", reasoning: true, quality: "ultra" }));

    expect(warnings).toHaveLength(3);
  });
});

describe("a sandbox edit", () => {
  it("shows the source, at its size", async () => {
    const bytes = await draw({ prompt: "Add a hat", images: [await plain("#d02020", 120, 80)], size: null, format: "png" });
    const { dominant } = await sharp(bytes).stats();

    expect(await sharp(bytes).metadata()).toMatchObject({ width: 120, height: 80 });
    expect(dominant.r).toBeGreaterThan(dominant.g + 60);
  });

  it("puts a transparent source on white", async () => {
    const clear = await sharp({ create: { width: 90, height: 90, channels: 4, background: "#00000000" } })
      .png()
      .toBuffer();
    const images = [{ bytes: new Uint8Array(clear), contentType: "image/png", name: "clear.png" }];

    const middle = await sharp(await draw({ prompt: "x", images, size: null }))
      .extract({ left: 40, top: 30, width: 10, height: 20 })
      .toBuffer();

    expect((await sharp(middle).greyscale().stats()).channels[0]?.mean).toBeGreaterThan(190);
  });

  it("differs with the source and with the prompt", async () => {
    const ask = { prompt: "Add a hat", size: { width: 80, height: 80 }, format: "png" } as const;
    const red = await draw({ ...ask, images: [await plain("#d02020")] });
    const blue = await draw({ ...ask, images: [await plain("#2020d0")] });
    const second = await draw({ ...ask, images: [await plain("#d02020"), await plain("#ffffff")] });

    expect(await difference(red, blue)).toBeGreaterThan(30);
    expect(await difference(red, second)).toBeGreaterThan(1);
  });

  it("changes the picture only where the mask is transparent", async () => {
    const [width, height] = [100, 100];
    const hole = {
      input: await sharp({ create: { width: 50, height: 60, channels: 4, background: "#ffffffff" } })
        .png()
        .toBuffer(),
      left: 50,
      top: 0,
    };
    const mask = await sharp({ create: { width, height, channels: 4, background: "#000000ff" } })
      .composite([{ ...hole, blend: "dest-out" }])
      .png()
      .toBuffer();
    const images = [await plain("#d02020", width, height)];

    const edited = await draw({
      prompt: "a city",
      images,
      size: null,
      format: "png",
      mask: { bytes: mask, contentType: "image/png", name: "mask" },
    });

    const meanOf = async (left: number) => {
      const region = await sharp(edited).extract({ left, top: 5, width: 40, height: 50 }).png().toBuffer();
      return (await sharp(region).stats()).channels.map(({ mean }) => Math.round(mean));
    };
    expect(await meanOf(5)).toEqual([208, 32, 32]);
    expect(await meanOf(55)).not.toEqual([208, 32, 32]);
  });

  it.each<[string, Partial<ImageCall>]>([
    ["no picture", { images: [{ bytes: new TextEncoder().encode("<html>"), contentType: "image/png", name: "x" }] }],
    ["a picture that can hold a program", { images: [{ bytes: new TextEncoder().encode(SVG), contentType: "image/png", name: "x" }] }],
    ["a size beyond its bounds", { size: { width: 63, height: 64 } }],
    ["too large a size", { size: { width: 64, height: 4_097 } }],
    ["too many", { count: 11 }],
  ])("refuses %s", async (_what, call) => {
    await expect(image.generate(imageCall({ prompt: "sea", ...call }))).rejects.toMatchObject({ kind: "status", status: 400 });
  });

  it("refuses a picture that unfolds to too much", async () => {
    const bomb = await sharp({ create: { width: 9_000, height: 9_000, channels: 3, background: "#000" } })
      .png()
      .toBuffer();
    const images = [{ bytes: new Uint8Array(bomb), contentType: "image/png", name: "bomb.png" }];

    await expect(image.generate(imageCall({ prompt: "sea", images }))).rejects.toMatchObject({ status: 400, upstreamParam: "image" });
  });
});

describe("directives", () => {
  it.each([
    ["[fail 429] sea", { kind: "status", status: 429 }],
    ["[cut] sea", { kind: "cut" }],
    ["[error mid-stream] sea", { kind: "status", status: 500 }],
    ["[delay 700s] sea", { status: 400, upstreamParam: "prompt" }],
  ])("%s", async (prompt, error) => {
    await expect(image.generate(imageCall({ prompt }))).rejects.toMatchObject({ name: "ProviderError", ...error });
  });

  it("wait, and report tokens", async () => {
    const startedAt = performance.now();
    const { usage } = await image.generate(imageCall({ prompt: "[delay 60ms] [tokens in=50 image_in=20 image_out=1000] sea" }));
    const { usage: none } = await image.generate(imageCall({ prompt: "[no usage] sea" }));

    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(55);
    expect(usage).toMatchObject({ inputTextTokens: 30, inputImageTokens: 20, outputImageTokens: 1_000, outputTextTokens: 0 });
    expect(none).toBeNull();
  });

  it("hang until the time is up or the caller has gone", async () => {
    const leaving = new AbortController();
    const hanging = image.generate(imageCall({ prompt: "[hang] sea", signal: leaving.signal }));
    leaving.abort(new Error("gone"));

    await expect(hanging).rejects.toThrow("gone");
  });
});
