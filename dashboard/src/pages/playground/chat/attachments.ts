/** Files that go with a message: pictures and PDFs as data URLs, and text files as text. */
import { formatBytes } from "../../../ui/amounts.js";

/** Of one message. */
export const ATTACHMENTS_MAX = 8;
/** Longer sides are scaled down: vendors scale pictures of more pixels themselves, and charge for them. */
const PICTURE_SIDE_MAX = 2_048;
/** A picture of more bytes is written again as JPEG. */
const PICTURE_BYTES_MAX = 1_500_000;
const JPEG_QUALITY = 0.85;
/** Of one message, as sent: half of a request at most, which has the earlier messages, too. */
export const ATTACHED_CHARS_MAX = 16 * 1_024 * 1_024;
/** Bytes of a PDF. */
export const PDF_BYTES_MAX = 8 * 1_024 * 1_024;
/** Bytes of a text file. */
export const TEXT_BYTES_MAX = 200 * 1_024;

const PDF_TYPE = "application/pdf";
/** Readers look for the signature in so many bytes. */
const PDF_START_WITHIN = 1_024;

export type Attachment =
  | { readonly kind: "picture" | "pdf"; readonly name: string; readonly url: string }
  | { readonly kind: "text"; readonly name: string; readonly text: string };

/** Throws an Error whose message can be shown. */
export async function toAttachment(file: File): Promise<Attachment> {
  const { name } = file;
  if (file.type.startsWith("image/") && file.type !== "image/svg+xml") return { kind: "picture", name, url: await toDataUrl(file) };
  if (file.type === PDF_TYPE) return { kind: "pdf", name, url: await toPdf(file) };
  if (file.size > TEXT_BYTES_MAX) throw new Error(`${name} is too large: a text file may have ${formatBytes(TEXT_BYTES_MAX)}.`);
  const bytes = await file.arrayBuffer();
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (text.includes("\0")) throw new Error("binary");
    return { kind: "text", name, text };
  } catch {
    throw new Error(`${name} is not an image, a PDF or a text file.`);
  }
}

async function toPdf(file: File): Promise<string> {
  if (file.size > PDF_BYTES_MAX) throw new Error(`${file.name} is too large: a PDF may have ${formatBytes(PDF_BYTES_MAX)}.`);
  const start = new TextDecoder().decode(await file.slice(0, PDF_START_WITHIN).arrayBuffer());
  if (!start.includes("%PDF-")) throw new Error(`${file.name} is not a PDF.`);
  return readAsDataUrl(file);
}

async function toDataUrl(file: File): Promise<string> {
  const bitmap = await createImageBitmap(file).catch(() => {
    throw new Error(`${file.name} is not an image that this browser can read.`);
  });
  const scale = Math.min(1, PICTURE_SIDE_MAX / Math.max(bitmap.width, bitmap.height));
  if (scale === 1 && file.size <= PICTURE_BYTES_MAX && /^image\/(?:png|jpeg|webp|gif)$/.test(file.type)) return readAsDataUrl(file);
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const context = canvas.getContext("2d");
  if (!context) throw new Error(`${file.name} could not be scaled.`);
  // JPEG has no transparency.
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  return canvas.toDataURL("image/jpeg", JPEG_QUALITY);
}

function readAsDataUrl(file: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(new Error("The file could not be read."));
    reader.readAsDataURL(file);
  });
}

/** Characters that an attachment adds to a request. */
export function lengthOf(attachment: Attachment): number {
  return attachment.kind === "text" ? attachment.text.length : attachment.url.length;
}

/** A text file within the message, so that every model can read it. */
export function textWith(text: string, attachments: readonly Attachment[]): string {
  const files = attachments.flatMap((one) => (one.kind === "text" ? [`File ${one.name}:\n\n${one.text}`] : []));
  return [...(text.trim() === "" ? [] : [text]), ...files].join("\n\n");
}
