/**
 * The way of a request's context through the code, call by call. It begins at the handler of a route and follows every call that is
 * handed the context, or an object that holds it, into the function that is called. A stay is an unbroken run of such functions in one
 * file. Values that are read from the context or made from it can be followed in the same way.
 */
import { join, relative } from "node:path";
import { type FunctionLikeDeclaration, type Node, SyntaxKind } from "typescript/unstable/ast";
import {
  isAsExpression,
  isAwaitExpression,
  isBinaryExpression,
  isBlock,
  isCallExpression,
  isConditionalExpression,
  isConstructorDeclaration,
  isFunctionLikeDeclaration,
  isIdentifier,
  isNewExpression,
  isObjectBindingPattern,
  isObjectLiteralExpression,
  isParenthesizedExpression,
  isPropertyAccessExpression,
  isPropertyAssignment,
  isReturnStatement,
  isShorthandPropertyAssignment,
  isSpreadAssignment,
  isStringLiteral,
  isThisExpression,
  isVariableDeclaration,
} from "typescript/unstable/ast/is";
import { API, type APIOptions, type Project } from "typescript/unstable/sync";
import type { CalledFunction } from "./coverage.js";

/** The file of each stay, in order. */
export interface Ways {
  /** Of the context itself. */
  readonly context: readonly string[];
  /** Of the context, its parts, and the results of calls that were handed it. */
  readonly derived: readonly string[];
}

/** Where in an expression the context is: "" is the context itself, ".call.ctx" a field of a field. */
type Places = readonly string[];

export interface WayOptions {
  readonly root: string;
  /** The route whose handler is meant. */
  readonly path: string;
  /** The functions that the request called: other branches of the code are left out. Null: every branch is followed. */
  readonly called: readonly CalledFunction[] | null;
  readonly api?: APIOptions;
}

export function followContext({ root, path, called, api: options }: WayOptions): Ways {
  const api = new API({ cwd: root, ...options });
  try {
    const [project] = api.updateSnapshot({ openProjects: [join(root, "tsconfig.json")] }).getProjects();
    if (!project) throw new Error(`There is no tsconfig.json in ${root}.`);
    const lines = called && new Set(called.map(({ file, line }) => `${file}:${line}`));
    const walk = (isDerivedToo: boolean) => new Walk(project, root, lines, isDerivedToo).from(path);
    return { context: walk(false), derived: walk(true) };
  } finally {
    api.close();
  }
}

class Walk {
  private readonly entered: string[] = [];
  /** By function and its arguments: the places of the context in its result. */
  private readonly passed = new Map<string, Places>();
  /** The same of each call, as it was followed last. */
  private readonly results = new Map<Node, Places>();
  private readonly methods = new Map<string, FunctionLikeDeclaration[]>();

  constructor(
    private readonly project: Project,
    private readonly root: string,
    private readonly called: ReadonlySet<string> | null,
    private readonly isDerivedToo: boolean,
  ) {}

  from(path: string): string[] {
    const sources = this.project.program
      .getSourceFileNames()
      .filter((name) => relative(this.root, name).startsWith("src/") && !name.includes("/generated/"))
      .flatMap((name) => this.project.program.getSourceFile(name) ?? []);
    const handlers: FunctionLikeDeclaration[] = [];
    for (const source of sources) {
      this.collectMethods(source);
      if (source.text.includes(JSON.stringify(path))) collectHandlers(source, path, handlers);
    }
    const [handler] = handlers;
    if (!handler) throw new Error(`No route ${path} has a handler.`);
    this.enter(handler, [[""]], []);
    return this.entered.filter((file, index) => file !== this.entered[index - 1]);
  }

  private collectMethods(node: Node): void {
    if (isFunctionLikeDeclaration(node) && "name" in node && node.name && isIdentifier(node.name) && node.body) {
      const named = this.methods.get(node.name.text);
      if (named) named.push(node);
      else this.methods.set(node.name.text, [node]);
    }
    node.forEachChild((child) => this.collectMethods(child));
  }

  /** `given`: what each argument holds; `own`: what the object holds whose method it is. */
  private enter(callee: FunctionLikeDeclaration, given: readonly Places[], own: Places): Places {
    const held = new Map<string, Places>();
    if (own.length > 0) held.set("this", own);
    callee.parameters.forEach((parameter, index) => {
      const places = given[index] ?? [];
      this.bind(parameter.name, places, held);
      if (places.length > 0 && parameter.modifiers?.length) hold(held, "this", under(textOf(parameter.name), places));
    });
    if (held.size === 0) return [];
    const file = this.fileOf(callee);
    this.entered.push(file);
    const key = `${file}:${callee.getStart()}:${JSON.stringify([...held])}`;
    const known = this.passed.get(key);
    if (known) return known;
    this.passed.set(key, []);
    if (callee.body) this.visit(callee.body, held);
    const returned = isConstructorDeclaration(callee) ? (held.get("this") ?? []) : this.placesReturned(callee, held);
    this.passed.set(key, returned);
    return returned;
  }

  private placesReturned({ body }: FunctionLikeDeclaration, held: ReadonlyMap<string, Places>): Places {
    if (!body) return [];
    if (!isBlock(body)) return this.placesIn(body, held);
    const places: string[] = [];
    const collect = (node: Node): void => {
      if (isFunctionLikeDeclaration(node)) return;
      if (isReturnStatement(node) && node.expression) places.push(...this.placesIn(node.expression, held));
      node.forEachChild(collect);
    };
    body.forEachChild(collect);
    return [...new Set(places)];
  }

  private visit(node: Node, held: Map<string, Places>): void {
    node.forEachChild((child) => this.visit(child, held));
    if (isVariableDeclaration(node) && node.initializer) this.bind(node.name, this.placesIn(node.initializer, held), held);
    if (isBinaryExpression(node) && node.operatorToken.kind === SyntaxKind.EqualsToken && isPropertyAccessExpression(node.left)) {
      if (isThisExpression(node.left.expression)) hold(held, "this", under(node.left.name.text, this.placesIn(node.right, held)));
    }
    if (isCallExpression(node) || isNewExpression(node)) this.follow(node, node.arguments ?? [], held);
  }

  private follow(call: Node & { readonly expression: Node }, values: readonly Node[], held: Map<string, Places>): void {
    const given = values.map((value) => this.placesIn(value, held));
    const own = isPropertyAccessExpression(call.expression) ? this.placesIn(call.expression.expression, held) : [];
    // A method of the context itself is no stay of the context: it is asked, and not passed on.
    const isOwn = own.length > 0 && !own.includes("");
    if (!isOwn && given.every((places) => places.length === 0)) return;
    const callee = this.calleeOf(call);
    if (callee && this.isTaken(callee)) this.results.set(call, this.enter(callee, given, isOwn ? own : []));
  }

  /** The function itself, or the one method that fulfils the interface and was called. */
  private calleeOf(call: Node & { readonly expression: Node }): FunctionLikeDeclaration | null {
    const declared = this.project.checker.getResolvedSignature(call)?.declaration?.resolve(this.project);
    if (!declared || declared.getSourceFile().isDeclarationFile) return null;
    if (isFunctionLikeDeclaration(declared) && declared.body) return declared;
    const name = isPropertyAccessExpression(call.expression) ? call.expression.name.text : textOf(call.expression);
    const [only, ...others] = (this.methods.get(name) ?? []).filter((method) => this.isTaken(method));
    return only && others.length === 0 ? only : null;
  }

  private isTaken(callee: FunctionLikeDeclaration): boolean {
    const file = this.fileOf(callee);
    if (!file.startsWith("src/")) return false;
    if (this.called === null || isConstructorDeclaration(callee)) return true;
    const source = callee.getSourceFile();
    const line = source.text.slice(0, callee.getStart()).split("\n").length;
    const last = source.text.slice(0, callee.body?.getStart() ?? callee.getStart()).split("\n").length;
    for (let at = line; at <= last; at++) if (this.called.has(`${file}:${at}`)) return true;
    return false;
  }

  private placesIn(node: Node, held: ReadonlyMap<string, Places>): Places {
    if (isParenthesizedExpression(node) || isAsExpression(node) || isAwaitExpression(node)) return this.placesIn(node.expression, held);
    if (isIdentifier(node)) return held.get(node.text) ?? [];
    if (isThisExpression(node)) return held.get("this") ?? [];
    if (isPropertyAccessExpression(node)) return this.inside(node.name.text, this.placesIn(node.expression, held));
    if (isConditionalExpression(node)) return [...this.placesIn(node.whenTrue, held), ...this.placesIn(node.whenFalse, held)];
    if (isNewExpression(node) || (isCallExpression(node) && this.isDerivedToo)) return this.results.get(node) ?? [];
    if (!isObjectLiteralExpression(node)) return [];
    return node.properties.flatMap((property) => {
      if (isSpreadAssignment(property)) return this.placesIn(property.expression, held);
      if (isShorthandPropertyAssignment(property)) return under(textOf(property.name), held.get(textOf(property.name)) ?? []);
      if (isPropertyAssignment(property)) return under(textOf(property.name), this.placesIn(property.initializer, held));
      return [];
    });
  }

  private bind(name: Node, places: Places, held: Map<string, Places>): void {
    if (isIdentifier(name)) {
      // Another thing by that name, in a function within.
      if (places.length === 0) held.delete(name.text);
      else held.set(name.text, places);
    } else if (isObjectBindingPattern(name)) {
      for (const { name: local, propertyName, dotDotDotToken } of name.elements) {
        if (local) this.bind(local, dotDotDotToken ? places : this.inside(textOf(propertyName ?? local), places), held);
      }
    }
  }

  private inside(field: string, places: Places): Places {
    const fields = places.filter((place) => place === `.${field}` || place.startsWith(`.${field}.`));
    const parts = this.isDerivedToo && places.includes("") ? [""] : [];
    return [...parts, ...fields.map((place) => place.slice(field.length + 1))];
  }

  private fileOf(node: Node): string {
    return relative(this.root, node.getSourceFile().fileName);
  }
}

/** The property `handler` of each method that the call has whose first argument is the path. */
function collectHandlers(node: Node, path: string, into: FunctionLikeDeclaration[]): void {
  if (isCallExpression(node)) {
    const [first, second] = node.arguments;
    if (first && second && isStringLiteral(first) && first.text === path) collectProperty(second, "handler", into);
  }
  node.forEachChild((child) => collectHandlers(child, path, into));
}

function collectProperty(node: Node, name: string, into: FunctionLikeDeclaration[]): void {
  if (isPropertyAssignment(node) && textOf(node.name) === name && isFunctionLikeDeclaration(node.initializer)) into.push(node.initializer);
  node.forEachChild((child) => collectProperty(child, name, into));
}

function hold(held: Map<string, Places>, name: string, places: Places): void {
  if (places.length > 0) held.set(name, [...new Set([...(held.get(name) ?? []), ...places])]);
}

function under(field: string, places: Places): Places {
  return places.map((place) => `.${field}${place}`);
}

function textOf(node: Node): string {
  return isIdentifier(node) || isStringLiteral(node) ? node.text : node.getText();
}
