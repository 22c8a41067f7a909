import fc from "fast-check";
import sharp from "sharp";
import { describe, expect, it } from "vitest";
import {
  bareMediaType,
  closedTypeOf,
  convertPicture,
  GENERATED_TYPES,
  generatedTypeOf,
  measurePicture,
  pictureTypeOf,
  storedAnswerTypeOf,
  UNKNOWN_TYPE,
} from "../../src/lib/content-types.js";
import { picture } from "../support/pictures.js";

describe("a stated content type", () => {
  it.each([
    ["image/png", "image/png"],
    ["IMAGE/PNG", "image/png"],
    [" image/png ; charset=binary", "image/png"],
    ["image/jpg", "image/jpeg"],
    ["audio/x-wav; codecs=1", "audio/wav"],
    ["application/ogg", "audio/ogg"],
    ["audio/mp3", "audio/mpeg"],
  ])("%s is %s", (said, type) => {
    expect(generatedTypeOf(said)).toBe(type);
    expect(closedTypeOf(said)).toBe(type);
  });

  it.each([
    "",
    ";",
    "image",
    "image/svg+xml",
    "text/html",
    "text/html; image/png",
    "text/xml",
    "application/xhtml+xml",
    "application/pdf",
    "text/javascript",
    "image/png, text/html",
    "image/png text/html",
    "constructor",
    "__proto__",
  ])("%s is of no listed type, so that browsers save the file", (said) => {
    expect(generatedTypeOf(said)).toBeNull();
    expect(closedTypeOf(said)).toBe(UNKNOWN_TYPE);
  });

  it("is always one of the list", () => {
    const types: readonly string[] = GENERATED_TYPES;
    const said = fc.oneof(
      fc.string(),
      fc.tuple(fc.constantFrom(...types, "text/html"), fc.string()).map((parts) => parts.join("")),
    );
    fc.assert(
      fc.property(said, (each) => {
        expect(types).toContain(closedTypeOf(each));
        expect(storedAnswerTypeOf(each) === each || storedAnswerTypeOf(each) === UNKNOWN_TYPE).toBe(true);
      }),
    );
    for (const type of types) expect([generatedTypeOf(type), storedAnswerTypeOf(type), bareMediaType(type)]).toEqual([type, type, type]);
  });
});

describe("the type of a stored answer", () => {
  it("is sent again only when it is one that the gateway itself writes, letter for letter", () => {
    for (const type of ["application/json; charset=utf-8", "text/vtt; charset=utf-8", "image/png"])
      expect(storedAnswerTypeOf(type)).toBe(type);
    for (const type of ["text/html", "image/svg+xml", "Image/png", "image/png; x=y", "", "application/json"]) {
      expect(storedAnswerTypeOf(type)).toBe(UNKNOWN_TYPE);
    }
  });
});

describe("the type of a picture by its bytes", () => {
  it.each(["png", "jpeg", "webp", "gif"] as const)("is known for a real %s", async (format) => {
    expect(pictureTypeOf(await picture(4, 4, format))).toBe(`image/${format}`);
  });

  it("is known for a real AVIF", async () => {
    expect(
      pictureTypeOf(
        await sharp(await picture(4, 4))
          .avif()
          .toBuffer(),
      ),
    ).toBe("image/avif");
  });

  it("is read from the bytes of a view, not from those around it", async () => {
    const png = await picture(4, 4);
    const around = Buffer.concat([Buffer.from("<svg>"), png]);

    expect(pictureTypeOf(around)).toBeNull();
    expect(pictureTypeOf(new Uint8Array(around.buffer, around.byteOffset + 5, png.length))).toBe("image/png");
    expect(pictureTypeOf(png.subarray(0, 3))).toBeNull();
  });

  it.each([
    ["nothing", ""],
    ["SVG", "<svg xmlns='http://www.w3.org/2000/svg'/>"],
    ["a page", "<!doctype html><script>alert(1)</script>"],
    ["white space before the signature", "\n\x89PNG\r\n\x1a\n"],
    ["another RIFF file", "RIFF\0\0\0\0WAVE"],
    ["another file of boxes", "\0\0\0\x1cftypmp42"],
    ["a GIF of no known version", "GIF88a......"],
  ])("is unknown for %s", (_what, text) => {
    expect(pictureTypeOf(Buffer.from(text, "latin1"))).toBeNull();
  });

  it("does not depend on what the size fields hold, line ends among them", () => {
    const size = fc.uint8Array({ minLength: 4, maxLength: 4 });
    fc.assert(
      fc.property(size, (bytes) => {
        const ofSize = (before: string, after: string) => Buffer.concat([Buffer.from(before), bytes, Buffer.from(after)]);

        expect(pictureTypeOf(ofSize("RIFF", "WEBP"))).toBe("image/webp");
        expect(pictureTypeOf(ofSize("", "ftypavif"))).toBe("image/avif");
      }),
    );
    expect(pictureTypeOf(Buffer.from("RIFF\n\r\n\nWEBP"))).toBe("image/webp");
  });
});

describe("a picture", () => {
  it("is measured without decoding", async () => {
    expect(await measurePicture(await picture(30, 20, "webp"))).toEqual({ width: 30, height: 20 });
    expect(await measurePicture(Buffer.from("no picture"))).toBeNull();
    expect(await measurePicture(new Uint8Array())).toBeNull();
  });

  it.each(["png", "jpeg", "webp"] as const)("is converted to %s at its full size", async (format) => {
    const converted = await convertPicture(await picture(30, 20), format, 600);

    expect(pictureTypeOf(converted)).toBe(`image/${format}`);
    expect(await measurePicture(converted)).toEqual({ width: 30, height: 20 });
  });

  it("gets a white background as JPEG", async () => {
    const converted = await convertPicture(await picture(8, 8, "png", "#00000000"), "jpeg", 64);

    expect([...(await sharp(converted).raw().toBuffer()).subarray(0, 3)]).toEqual([255, 255, 255]);
  });

  it("is refused above the bound of pixels, and converted at it", async () => {
    const png = await picture(30, 20);

    await expect(convertPicture(png, "webp", 599)).rejects.toThrow("pixel limit");
    expect(await convertPicture(png, "webp", 600)).not.toHaveLength(0);
  });

  it("is refused when it cannot be read", async () => {
    await expect(convertPicture(Buffer.from("no picture"), "png", 600)).rejects.toThrow("unsupported image format");
  });
});
