/** sysexits.h: EX_CONFIG. A supervisor that is told so leaves the process stopped (systemd: RestartPreventExitStatus). */
export const EXIT_CONFIG = 78;
const EXIT_FAILURE = 1;

/** What keeps the process from starting until its operator puts it right: shown as it is, without a stack. */
export class StartError extends Error {
  override readonly name: string = "StartError";
  readonly exitCode: number = EXIT_CONFIG;
}

/** What may pass by itself, such as a database that is not up yet: a supervisor may start the process again. */
export class PassingStartError extends StartError {
  override readonly name: string = "PassingStartError";
  override readonly exitCode = EXIT_FAILURE;
}

/** Says on standard error why the process cannot start, or why it died. Returns its exit code. */
export function reportStartFailure(error: unknown): number {
  const text = error instanceof StartError ? error.message : error instanceof Error ? error.stack : String(error);
  process.stderr.write(`${text}\n`);
  return error instanceof StartError ? error.exitCode : EXIT_FAILURE;
}
