/**
 * Telephone numbers in a text: international, North American, with the leading 0 of most other countries, or after a word such as "phone".
 * libphonenumber's numbering plans confirm the first and the third form.
 */
import { type CountryCode, parsePhoneNumberFromString } from "libphonenumber-js/min";
import { type Finding, MARKS } from "./redaction.js";

const SEPARATORS = "[ .\\-/()\\u00a0\\u2009\\u202f\\u2010-\\u2013]";
const INTERNATIONAL = new RegExp(`(?<![\\w+])(?:\\+|00(?=[1-9]))[ ]?\\(?\\d(?:${SEPARATORS}{0,2}\\d){6,14}(?!\\w)`, "g");
/** 3, 3 and 4 digits: by shape alone, also the fictional 555 numbers. */
const NORTH_AMERICAN =
  /(?<![\w+.]|\d-)(?:1[ .-])?(?:\([2-9]\d{2}\)[ -]?|[2-9]\d{2}[ .\-\u2010-\u2013])\d{3}[ .\-\u2010-\u2013]\d{4}(?!\w|[.-]\d)/g;
const NATIONAL = new RegExp(`(?<![\\w.,+/:-])\\(?0[1-9](?:${SEPARATORS}{0,2}\\d){7,10}(?!\\w|[.,:]\\d)`, "g");
const ANNOUNCED =
  /(?<![\p{L}\p{N}])(?:(phone|telephone|tel|mobile|cell|cellphone|fax|whatsapp|telefon|téléphone|teléfono|handy)|call|text|sms|dial|ring|reach|contact)(?![\p{L}\p{N}])[^\d\n]{0,16}(?<number>\(?\d(?:[ .\-()]{0,2}\d){6,14})(?!\w)/giu;
/** 01/02/2024, 1.2.2024: a day, and the text after it. */
const DATE = /^\(?\d{1,2}[/.\- ]\d{1,2}[/.\- ](?:19|20)\d{2}(?!\d)/;

/** Countries whose national numbers begin with 0, large ones and those with a strict plan first. */
const ZERO_COUNTRIES: readonly CountryCode[] = [
  "GB",
  "FR",
  "DE",
  "IT",
  "NL",
  "AU",
  "JP",
  "IN",
  "CN",
  "CH",
  "AT",
  "BE",
  "SE",
  "IE",
  "KR",
  "ZA",
];
/** Unbroken digits are confirmed only by plans of one length: under the others nearly every number is valid. */
const UNBROKEN_COUNTRIES: readonly CountryCode[] = ["GB", "FR", "AU"];
const GERMAN_MOBILE = /^01[5-7]\d{8,9}$/;
/** A number after a word with other meanings must have full length. */
const ANNOUNCED_DIGITS_MIN = 7;
const CALLED_DIGITS_MIN = 10;
/** Beyond this many candidates a text is a directory or an attack: shape alone decides. */
const CHECKED_MAX = 300;

export function findPhoneNumbers(text: string): Finding[] {
  const found: Finding[] = [];
  const add = (start: number, number: string) => found.push({ start, end: start + number.length, mark: MARKS.phone });
  let checked = 0;
  const isChecked = () => {
    checked += 1;
    return checked <= CHECKED_MAX;
  };
  for (const { index, 0: candidate } of text.matchAll(INTERNATIONAL)) {
    const number = isChecked() ? internationalIn(candidate) : candidate;
    if (number !== null) add(index, number);
  }
  let wholeUntil = 0;
  for (const { index, 0: number } of text.matchAll(NORTH_AMERICAN)) {
    if (isTail(text, index, wholeUntil)) continue;
    add(index, number);
    wholeUntil = index + number.length;
  }
  for (const { index, 0: candidate } of text.matchAll(NATIONAL)) {
    if (isTail(text, index, wholeUntil) || DATE.test(candidate) || (isChecked() && !isNational(candidate))) continue;
    add(index, candidate);
    wholeUntil = index + candidate.length;
  }
  for (const { index, 0: sentence, 1: noun, groups } of text.matchAll(ANNOUNCED)) {
    const number = groups?.number ?? "";
    const digits = number.replace(/\D/g, "").length;
    if (digits >= (noun === undefined ? CALLED_DIGITS_MIN : ANNOUNCED_DIGITS_MIN) && !DATE.test(number)) {
      add(index + sentence.length - number.length, number);
    }
  }
  return found;
}

/** Digits after other digits continue those, unless those are a telephone number that ended at `wholeUntil`. */
function isTail(text: string, index: number, wholeUntil: number): boolean {
  return index - 1 !== wholeUntil && text.charAt(index - 1) === " " && /\d/.test(text.charAt(index - 2));
}

/** The longest prefix of a candidate that is a number of some country: the rest may be another number. */
function internationalIn(candidate: string): string | null {
  const isPlus = candidate.startsWith("+");
  const parse = (text: string) => parsePhoneNumberFromString(isPlus ? text : `+${text.slice(2)}`);
  let possible: string | null = null;
  for (let end = candidate.length; end > 7; end = lastBreak(candidate, end)) {
    const text = candidate.slice(0, end);
    const number = parse(text);
    if (number?.isValid()) return text;
    // Unassigned numbers also count as possible; only a plus marks those as numbers.
    if (possible === null && isPlus && number?.isPossible()) possible = text;
  }
  return possible;
}

/** The start of the last group of digits before `end`, without its separators. */
function lastBreak(text: string, end: number): number {
  let index = end - 1;
  while (index > 0 && /\d/.test(text.charAt(index - 1))) index -= 1;
  while (index > 0 && !/\d/.test(text.charAt(index - 1))) index -= 1;
  return index;
}

function isNational(candidate: string): boolean {
  if (/^\d+$/.test(candidate) && !GERMAN_MOBILE.test(candidate)) return isOneOf(candidate, UNBROKEN_COUNTRIES);
  return isOneOf(candidate, ZERO_COUNTRIES);
}

function isOneOf(candidate: string, countries: readonly CountryCode[]): boolean {
  return countries.some((country) => parsePhoneNumberFromString(candidate, country)?.isValid() === true);
}
