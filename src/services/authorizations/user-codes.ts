/** User codes: what a person types to say which device is meant (RFC 8628 6.1). */
import { randomInt } from "node:crypto";
import { invalidInput } from "../../errors.js";

/** Consonants that are not easily taken for one another, and that spell nothing. */
const LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
const LENGTH = 8;
/** What people put between the letters, or their phones at the end. */
const SEPARATORS = /[\s\p{Pd}]/gu;
const PATTERN = new RegExp(`^[${LETTERS}]{${LENGTH}}$`);

/** As it is stored: eight letters, 34.5 bits. */
export function createUserCode(): string {
  return Array.from({ length: LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join("");
}

/** As it is shown: XXXX-XXXX. */
export function formatUserCode(userCode: string): string {
  return `${userCode.slice(0, LENGTH / 2)}-${userCode.slice(LENGTH / 2)}`;
}

/** What was typed, as it is stored; in any case, with or without dash and spaces. Throws BAD_REQUEST for what can be no code. */
export function parseUserCode(typed: string): string {
  const userCode = typed.replace(SEPARATORS, "").toUpperCase();
  if (!PATTERN.test(userCode))
    throw invalidInput("A code has eight letters, such as BCDF-GHJK. Vowels and digits do not occur.", "userCode");
  return userCode;
}
