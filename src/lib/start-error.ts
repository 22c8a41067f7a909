/** What keeps the process from starting and its operator can put right: shown as it is, without a stack. */
export class StartError extends Error {
  override readonly name: string = "StartError";
}
