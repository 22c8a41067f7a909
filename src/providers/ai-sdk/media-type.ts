/** What bytes are, by the bytes themselves. */

/** A media type without parameters; null when it is not known. */
export async function typeOfBytes(bytes: Uint8Array): Promise<string | null> {
  const { fileTypeFromBuffer } = await import("file-type");
  return (await fileTypeFromBuffer(bytes))?.mime.split(";")[0] ?? null;
}
