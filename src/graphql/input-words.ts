/** Services name the fields that they refuse as REST does: here they get the names of the schema, where these are others. */
import { AppError, type ValidationDetails } from "../errors.js";

/** What `work` answers. Refusals of fields that are keys of `words` name what stands there. */
export async function inSchemaWords<Answer>(words: Readonly<Record<string, string>>, work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof AppError && error.param !== undefined ? renamed(error, error.param, new Map(Object.entries(words))) : error;
  }
}

function renamed(error: AppError, param: string, words: ReadonlyMap<string, string>): AppError {
  const { code, message, cause } = error;
  const say = (path: string) => {
    const [head = "", ...rest] = path.split(".");
    return [words.get(head) ?? head, ...rest].join(".");
  };
  const { fieldErrors = {}, formErrors = [] } = (error.details ?? {}) as Partial<ValidationDetails>;
  const told = message.startsWith(`${param}: `) ? `${say(param)}${message.slice(param.length)}` : message;
  const details = { fieldErrors: Object.fromEntries(Object.entries(fieldErrors).map(([path, said]) => [say(path), said])), formErrors };
  return new AppError(code, told, { param: say(param), details, cause });
}
