/** Runs once before all test files, so that they find the template and do not each make it. */
import { ensureTemplate } from "../support/database.js";

export default async function setup(): Promise<void> {
  await ensureTemplate();
}
