/** Each path that the switch covers is not taken while it is off. */
import { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:net";
import express, { type Request, type Response } from "express";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DirectRoutes } from "../../src/fast/direct-routes.js";
import { adoptPrototypes } from "../../src/fast/express-prototypes.js";
import { setFastPaths } from "../../src/fast/fast-paths.js";
import { type PulledIterator, pullFrom } from "../../src/fast/pull.js";
import { listenOnSharedPort, type Place } from "../../src/fast/shared-port.js";
import { releaseMemory, takeMemory } from "../../src/fast/spare-memory.js";

// The file shares its process with others, whose paths are on.
beforeEach(() => setFastPaths(false));
afterEach(() => setFastPaths(true));

describe("with the fast paths off", () => {
  it("leaves every route to Express", () => {
    const routes = new DirectRoutes(() => undefined);
    routes.add("/v1/models", () => undefined);

    expect(routes.answer({ url: "/v1/models", headers: {} } as Request, {} as Response)).toBe(false);
  });

  it("leaves the prototypes of requests and answers alone", () => {
    class OwnRequest extends IncomingMessage {}
    class OwnResponse<Of extends IncomingMessage = IncomingMessage> extends ServerResponse<Of> {}

    adoptPrototypes({ IncomingMessage: OwnRequest, ServerResponse: OwnResponse }, express());

    expect(Object.getPrototypeOf(OwnRequest.prototype)).toBe(IncomingMessage.prototype);
    expect(Object.getPrototypeOf(OwnResponse.prototype)).toBe(ServerResponse.prototype);
  });

  it("keeps no memory: a released buffer stays as it is", () => {
    const bytes = takeMemory(300_000).fill("a");

    releaseMemory(bytes);

    expect([bytes.length, bytes[0]]).toEqual([300_000, 97]);
  });

  it("takes items by promise", async () => {
    const iterator: PulledIterator<number> = {
      next: async () => ({ done: false, value: 1 }),
      pull: () => ({ done: false, value: 2 }),
    };

    expect(pullFrom(iterator)).toBeInstanceOf(Promise);
    expect(await pullFrom(iterator)).toEqual({ done: false, value: 1 });
    setFastPaths(true);
    expect(pullFrom(iterator)).toEqual({ done: false, value: 2 });
  });

  it("listens on one socket", async () => {
    const places: Place[] = [];
    const listen = async (_server: Server, place: Place) => void places.push(place);

    await listenOnSharedPort(createServer(), "127.0.0.1", 0, listen);

    expect(places).toEqual([{ host: "127.0.0.1", port: 0 }]);
  });
});
