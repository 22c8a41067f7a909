/**
 * Routes without parameters, found by path before Express's router, which tries its patterns one by one. Anything but an exact match
 * (another spelling, a trailing slash, a separate host) is left to Express, which knows every route.
 */
import type { Request, Response } from "express";
import { isAtHost } from "../lib/urls.js";
import { hasFastPaths } from "./fast-paths.js";

/** Answers a request, or throws or rejects. */
export type DirectAnswer = (req: Request, res: Response) => unknown;

/** Wildcards of Express's patterns. */
const PARAMETER = /[:*{(]/;
const NO_PARAMETERS = {};

export class DirectRoutes {
  readonly #answers = new Map<string, DirectAnswer>();
  /** Prefixes of paths that Express may answer by an earlier route. */
  readonly #taken: string[] = [];
  /** Hosts that these routes do not answer. */
  readonly #hosts: string[] = [];

  /** `refuse`: answers an error that a route throws. */
  constructor(private readonly refuse: (req: Request, res: Response, error: unknown) => unknown) {}

  /** Call in Express's order: of two routes for one path the first one answers. */
  add(pattern: string, answer: DirectAnswer): void {
    if (!hasFastPaths()) return;
    const parameter = pattern.search(PARAMETER);
    if (parameter !== -1) this.#taken.push(pattern.slice(0, parameter));
    else if (!this.#answers.has(pattern) && !this.#taken.some((start) => pattern.startsWith(start))) this.#answers.set(pattern, answer);
  }

  mount({ host, path }: { readonly host: string | null; readonly path: string }): void {
    if (host === null) this.#taken.push(path);
    else this.#hosts.push(host);
  }

  /** False: did nothing; Express should answer. */
  answer(req: Request, res: Response): boolean {
    const { url } = req;
    const mark = url.indexOf("?");
    const answer = this.#answers.get(mark === -1 ? url : url.slice(0, mark));
    if (answer === undefined || this.isElsewhere(req)) return false;
    // As Express sets them.
    req.originalUrl = url;
    req.baseUrl = "";
    req.params = NO_PARAMETERS;
    try {
      const answered = answer(req, res);
      if (answered instanceof Promise) answered.catch((error: unknown) => this.refuse(req, res, error));
    } catch (error) {
      this.refuse(req, res, error);
    }
    return true;
  }

  private isElsewhere({ headers }: Request): boolean {
    for (const host of this.#hosts) if (isAtHost(headers, host)) return true;
    return false;
  }
}
