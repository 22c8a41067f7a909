/** Why a WebSocket is closed, as long as a close frame can say it (RFC 6455, 5.5: 125 bytes with the code). */
const REASON_BYTES_MAX = 123;

/** The text, or as many whole words of its beginning as fit. */
export function closeReason(text: string): string {
  if (Buffer.byteLength(text) <= REASON_BYTES_MAX) return text;
  let end = Math.min(text.length, REASON_BYTES_MAX);
  while (end > 0 && (Buffer.byteLength(text.slice(0, end)) > REASON_BYTES_MAX - 3 || text[end] !== " ")) end -= 1;
  return `${text.slice(0, end)}...`;
}
