/**
 * `privacy`: e-mail addresses, telephone numbers, card and bank numbers, IP addresses (docs/spec/safety.md). Candidates are found by shape
 * and confirmed by checksum or numbering plan, so that dates, ids and versions stay.
 *
 * Every search is linear: a pattern can only begin where no other attempt of it is under way, or is bounded in length.
 */
import { isIPv4, isIPv6 } from "node:net";
import { countrySpecs, isValidIBAN } from "ibantools";
import { ownValue } from "../../lib/own-values.js";
import { withoutTrailing } from "../../lib/urls.js";
import { findPhoneNumbers } from "./phone-numbers.js";
import { type Finding, MARKS } from "./redaction.js";

export function findPersonalData(text: string): readonly Finding[] {
  const hasDigit = /\d/.test(text);
  if (!hasDigit) return findEmailAddresses(text);
  // The more certain kind comes first: it names overlapping findings.
  return [...findEmailAddresses(text), ...findBankAccounts(text), ...findCards(text), ...findIpAddresses(text), ...findPhoneNumbers(text)];
}

/** RFC 5321: 64 characters before the @, 255 after it. */
const LOCAL_CHARS_MAX = 64;
const DOMAIN = /(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.){1,8}(?:xn--[A-Za-z0-9-]{2,59}|\p{L}{2,63})(?![\p{L}\p{N}])/uy;
const LOCAL_CHAR = /[\p{L}\p{N}._%+'&-]/u;

function findEmailAddresses(text: string): Finding[] {
  const found: Finding[] = [];
  for (let at = text.indexOf("@"); at !== -1; at = text.indexOf("@", at + 1)) {
    DOMAIN.lastIndex = at + 1;
    if (!DOMAIN.test(text)) continue;
    let start = at;
    while (start > 0 && at - start < LOCAL_CHARS_MAX && LOCAL_CHAR.test(text.charAt(start - 1))) start -= 1;
    // A quote around the address or the end of the previous sentence is not part of it.
    while (start < at && /[.'&-]/.test(text.charAt(start))) start += 1;
    if (start < at) found.push({ start, end: DOMAIN.lastIndex, mark: MARKS.email });
  }
  return found;
}

const IBAN_START = /(?<![0-9A-Za-z])[A-Za-z]{2}\d{2}(?=[ \u00a0-]?[0-9A-Za-z])/g;

/** IBANs as one word or in groups, with the length of their country and correct check digits. */
function findBankAccounts(text: string): Finding[] {
  const found: Finding[] = [];
  for (const { index, 0: head } of text.matchAll(IBAN_START)) {
    const chars = ownValue(countrySpecs, head.slice(0, 2).toUpperCase())?.chars ?? null;
    const end = chars === null ? null : endOfIban(text, index, chars);
    if (end === null) continue;
    const iban = text
      .slice(index, end)
      .replace(/[^0-9A-Za-z]/g, "")
      .toUpperCase();
    if (isValidIBAN(iban)) found.push({ start: index, end, mark: MARKS.bankAccount });
  }
  return found;
}

/** The end of `chars` letters and digits with at most one space or dash between two; null when they do not end there. */
function endOfIban(text: string, start: number, chars: number): number | null {
  let taken = 0;
  let wasSeparator = true;
  for (let index = start; index < text.length; index += 1) {
    const isSeparator = /[ \u00a0-]/.test(text.charAt(index));
    if (!isSeparator && !/[0-9A-Za-z]/.test(text.charAt(index))) return null;
    if (isSeparator && wasSeparator) return null;
    wasSeparator = isSeparator;
    if (isSeparator) continue;
    taken += 1;
    if (taken === chars) return /[0-9A-Za-z]/.test(text.charAt(index + 1)) ? null : index + 1;
  }
  return null;
}

/** Groups of three and more digits with one separator between two groups; not the tail of an id. */
const DIGIT_GROUPS = /(?<![\w.]|\d-|[0-9A-Fa-f]{4}-)\d{3,}(?:[ \u00a0\u2009\u202f.\-\u2010-\u2013]\d{3,})*(?!\w)/g;
const CARD_DIGITS_MIN = 13;
const CARD_DIGITS_MAX = 19;
/**
 * Issuers' ranges with the lengths of their numbers: Visa, Mastercard, American Express, Diners, JCB, Discover, UnionPay, Maestro, Mir,
 * RuPay, Troy.
 */
const CARD_NUMBERS =
  /^(?:4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12,15}|6(?:011|5\d\d|4[4-9]\d)\d{12,15}|62\d{14,17}|(?:5018|5020|5038|5[6-8]\d\d|63\d\d|67\d\d)\d{9,15}|220[0-4]\d{12,15}|(?:60|81|82)\d{14}|508\d{13}|9792\d{12})$/;

function findCards(text: string): Finding[] {
  const found: Finding[] = [];
  for (const { index, 0: run } of text.matchAll(DIGIT_GROUPS)) {
    const groups = [...run.matchAll(/\d+/g)].map((group) => ({ start: index + group.index, digits: group[0] }));
    for (let first = 0; first < groups.length; first += 1) {
      const last = lastOfCard(groups, first);
      const [from, to] = [groups[first], last === null ? undefined : groups[last]];
      if (last === null || !from || !to) continue;
      found.push({ start: from.start, end: to.start + to.digits.length, mark: MARKS.card });
      first = last;
    }
  }
  return found;
}

/** The last group of a card number that begins at `first`. */
function lastOfCard(groups: readonly { readonly digits: string }[], first: number): number | null {
  let digits = "";
  for (let last = first; last < groups.length; last += 1) {
    digits += groups[last]?.digits ?? "";
    if (digits.length > CARD_DIGITS_MAX) return null;
    if (digits.length >= CARD_DIGITS_MIN && CARD_NUMBERS.test(digits) && passesLuhn(digits)) return last;
  }
  return null;
}

function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let index = digits.length - 1, isDoubled = false; index >= 0; index -= 1, isDoubled = !isDoubled) {
    const digit = Number(digits[index]) * (isDoubled ? 2 : 1);
    sum += digit > 9 ? digit - 9 : digit;
  }
  return sum % 10 === 0;
}

const IPV4 = /(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)/g;
const COLON_WORD = /[0-9A-Za-z_:.]+/g;
/** `IP:2001:db8::1`: a name before the address, which cannot be part of it. */
const LABEL = /^[0-9A-Fa-f]*[G-Zg-z_][0-9A-Za-z_]*:(?!:)/;
const IPV6_CHARS_MAX = 64;

function findIpAddresses(text: string): Finding[] {
  const found: Finding[] = [];
  for (const { index, 0: address } of text.matchAll(IPV4)) {
    if (isIPv4(address)) found.push({ start: index, end: index + address.length, mark: MARKS.ipAddress });
  }
  if (!text.includes(":")) return found;
  for (const { index, 0: word } of text.matchAll(COLON_WORD)) {
    if (word.length > IPV6_CHARS_MAX || word.indexOf(":") === word.lastIndexOf(":")) continue;
    const label = LABEL.exec(word)?.[0].length ?? 0;
    const address = [word.slice(label), withoutTrailing(word.slice(label), ".:")].find(isIPv6);
    // Without a digit it is more likely a name in code: `a::b`.
    if (address === undefined || !/\d/.test(address)) continue;
    found.push({ start: index + label, end: index + label + address.length, mark: MARKS.ipAddress });
  }
  return found;
}
