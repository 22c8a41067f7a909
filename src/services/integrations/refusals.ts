/** What the brokers refuse in the same words. */
import { type AppError, conflict, invalidInput } from "../../errors.js";
import { CONNECTED_APPS_PER_ACCOUNT_MAX } from "./limits.js";

export function unknownToolkit(toolkit: string): AppError {
  return invalidInput(
    `There is no toolkit \`${toolkit}\` that can be connected. The toolkits are listed at /account/integrations/toolkits.`,
    "toolkit",
  );
}

export function tooManyConnections(): AppError {
  return conflict(`An account has at most ${CONNECTED_APPS_PER_ACCOUNT_MAX} connected apps. Remove one first.`);
}
