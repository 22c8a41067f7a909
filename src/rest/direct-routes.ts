/**
 * Routes without parameters, found by one look-up of the path before Express's router, which tries its patterns one after the other.
 * What is no exact hit (another spelling of the path, a slash at its end, a host of its own) is left to Express, which knows every route.
 */
import type { Request, Response } from "express";
import type { Logger } from "pino";
import { isAtHost } from "../lib/urls.js";
import type { HostMount } from "./host-mount.js";
import { type RouteIndex, refuser } from "./route.js";

/** Answers a request, or throws or rejects. */
export type DirectAnswer = (req: Request, res: Response) => unknown;

/** What a pattern of Express's has where a path has whatever it likes. */
const PARAMETER = /[:*{(]/;
const NO_PARAMETERS = {};

export class DirectRoutes implements RouteIndex {
  readonly #answers = new Map<string, DirectAnswer>();
  /** With what the paths begin that Express may answer by a route that was added earlier. */
  readonly #taken: string[] = [];
  /** These answer nothing of it. */
  readonly #hosts: string[] = [];

  readonly #refuse: ReturnType<typeof refuser>;

  constructor(log: Logger) {
    this.#refuse = refuser(log);
  }

  /** In the order in which Express is told of them: of two that answer one path the first does. */
  add(pattern: string, answer: DirectAnswer): void {
    const parameter = pattern.search(PARAMETER);
    if (parameter !== -1) this.#taken.push(pattern.slice(0, parameter));
    else if (!this.#answers.has(pattern) && !this.#taken.some((start) => pattern.startsWith(start))) this.#answers.set(pattern, answer);
  }

  /** What answers there is Express's to find. */
  mount({ host, path }: HostMount): void {
    if (host === null) this.#taken.push(path);
    else this.#hosts.push(host);
  }

  /** False: nothing was done, and Express is to answer. */
  answer(req: Request, res: Response): boolean {
    const { url } = req;
    const mark = url.indexOf("?");
    const answer = this.#answers.get(mark === -1 ? url : url.slice(0, mark));
    if (answer === undefined || this.isElsewhere(req)) return false;
    // As Express leaves them.
    req.originalUrl = url;
    req.baseUrl = "";
    req.params = NO_PARAMETERS;
    try {
      const answered = answer(req, res);
      if (answered instanceof Promise) answered.catch((error: unknown) => this.#refuse(req, res, error));
    } catch (error) {
      this.#refuse(req, res, error);
    }
    return true;
  }

  private isElsewhere({ headers }: Request): boolean {
    for (const host of this.#hosts) if (isAtHost(headers, host)) return true;
    return false;
  }
}
