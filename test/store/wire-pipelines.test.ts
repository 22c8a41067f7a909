import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PipelineReader } from "../../src/store/wire-pipelines.js";

const PARSE = "P";
const BIND = "B";
const SYNC = "S";

/** A message of the protocol: its type, its length and a body of `size` bytes. */
function message(type: string, size = 0): Buffer {
  const bytes = Buffer.alloc(5 + size, type.toLowerCase());
  bytes.write(type, 0, "latin1");
  bytes.writeInt32BE(4 + size, 1);
  return bytes;
}

function startup(): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeInt32BE(8, 0);
  bytes.writeInt32BE(196_608, 4);
  return bytes;
}

function startedReader(): PipelineReader {
  const reader = new PipelineReader();
  reader.push(startup());
  return reader;
}

describe("PipelineReader", () => {
  it("takes the first message without a type", () => {
    const pipelines = new PipelineReader().push(startup());

    expect(pipelines).toEqual([{ state: "complete", bytes: startup() }]);
  });

  it("keeps everything up to Sync together", () => {
    const bytes = Buffer.concat([message(PARSE, 20), message(BIND, 7), message("D", 1), message("E", 5), message(SYNC)]);

    expect(startedReader().push(bytes)).toEqual([{ state: "complete", bytes }]);
  });

  it("takes a simple query by itself", () => {
    const query = message("Q", 12);

    expect(startedReader().push(Buffer.concat([query, query]))).toEqual([
      { state: "complete", bytes: query },
      { state: "complete", bytes: query },
    ]);
  });

  it("says that a flushed pipeline is still open", () => {
    const bytes = Buffer.concat([message(PARSE, 3), message("H")]);

    expect(startedReader().push(bytes)).toEqual([{ state: "open", bytes }]);
  });

  it("says when the client leaves", () => {
    expect(startedReader().push(message("X"))).toEqual([{ state: "end", bytes: message("X") }]);
  });

  it("gives nothing away before the pipeline is whole", () => {
    const reader = startedReader();

    expect(reader.push(Buffer.concat([message(PARSE, 9), message(BIND, 9)]))).toEqual([]);
    expect(reader.push(message(SYNC).subarray(0, 3))).toEqual([]);
    expect(reader.push(message(SYNC).subarray(3))).toHaveLength(1);
  });

  it("finds the same pipelines however the bytes are cut", () => {
    const type = fc.constantFrom("P", "B", "D", "E", "C", "S", "Q", "H");
    const messages = fc.array(fc.tuple(type, fc.nat(40)), { maxLength: 30 });
    fc.assert(
      fc.property(messages, fc.array(fc.nat(60), { minLength: 1 }), (list, cuts) => {
        const bytes = Buffer.concat([startup(), ...list.map(([kind, size]) => message(kind, size))]);
        const whole = new PipelineReader().push(bytes);

        const reader = new PipelineReader();
        const pieces = [];
        for (let start = 0, turn = 0; start < bytes.length; turn += 1) {
          const end = start + (cuts[turn % cuts.length] ?? 0) + 1;
          pieces.push(...reader.push(bytes.subarray(start, end)));
          start = end;
        }

        expect(pieces).toEqual(whole);
      }),
    );
  });
});
