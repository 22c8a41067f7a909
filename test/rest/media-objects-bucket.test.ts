/** A gateway whose blobs are in a bucket: uploads and downloads of variant B go past it. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { picture } from "../support/pictures.js";
import { isS3Installed, startS3, type TestS3 } from "../support/s3.js";
import { type Client, createClient, expectEnvelope } from "./client.js";

describe.skipIf(!isS3Installed)("a gateway with a bucket", () => {
  let server: TestS3;
  let app: TestApp;
  let client: Client;
  beforeAll(async () => {
    const started = await startS3();
    if (!started) throw new Error("The S3 server did not start.");
    server = started;
    const mediaQuota = { bytesMax: 1e9, filesMax: 10, freeBytesMin: Number.MAX_SAFE_INTEGER };
    app = await createTestApp({ config: { s3: await server.createBucket(), mediaQuota } });
    client = createClient(app.baseUrl, app.key);
  }, 60_000);
  afterAll(async () => {
    await app.close();
    await server.stop();
  });

  it("sends both ways straight to it, however full its own disk is", async () => {
    const png = await picture();
    const announced = await client.post("/media/upload", { contentType: "image/png", size: png.length, name: "a.png", tags: ["s3"] });
    const { id, uploadUrl, headers } = announced.json<{ id: string; uploadUrl: string; headers: Record<string, string> }>();
    expect(new URL(uploadUrl).origin).toBe(server.endpoint);
    expectEnvelope(await client.request("POST", `/media/upload/${id}/complete`), 409, "CONFLICT");

    expect((await fetch(uploadUrl, { method: "PUT", headers, body: new Uint8Array(png) })).status).toBe(200);
    expect((await client.request("POST", `/media/upload/${id}/complete`)).status).toBe(200);
    const redirect = await fetch(`${app.baseUrl}/media/${id}`, { redirect: "manual" });
    const file = await fetch(redirect.headers.get("location") ?? "");

    expect(redirect.status).toBe(302);
    expect(file.url.startsWith(`${server.endpoint}/`)).toBe(true);
    expect([file.headers.get("content-type"), file.headers.get("content-disposition")]).toEqual(["image/png", 'inline; filename="a.png"']);
    expect(Buffer.from(await file.arrayBuffer()).equals(png)).toBe(true);
    expect((await client.request("DELETE", `/media/media/${id}`)).status).toBe(200);
    expect((await fetch(file.url)).status).toBe(404);
    const small = await client.post("/media/upload", { data: "YQ==" });
    expectEnvelope(small, 503, "SERVICE_UNAVAILABLE");
  });
});
