/** sysexits.h: EX_CONFIG. A supervisor leaves the process stopped (systemd: RestartPreventExitStatus). */
export const EXIT_CONFIG = 78;
const EXIT_FAILURE = 1;

/** An error that the operator must fix before the process can start; shown without a stack. */
export class StartError extends Error {
  override readonly name: string = "StartError";
  readonly exitCode: number = EXIT_CONFIG;
}

/** An error that may pass by itself, such as a database that is not up yet: a supervisor may restart the process. */
export class PassingStartError extends StartError {
  override readonly name: string = "PassingStartError";
  override readonly exitCode = EXIT_FAILURE;
}

/** Prints why the process cannot start, or why it died. Returns its exit code. */
export function reportStartFailure(error: unknown): number {
  const text = error instanceof StartError ? error.message : error instanceof Error ? error.stack : String(error);
  process.stderr.write(`${text}\n`);
  return error instanceof StartError ? error.exitCode : EXIT_FAILURE;
}
