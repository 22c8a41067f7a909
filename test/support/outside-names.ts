/**
 * Finds where a source file looks an object up by a name from outside. Every object has a `constructor`, so `name in
 * object` and `object[name]` find inherited values. The compiler says which expressions are names: text that is not one
 * of a known few.
 */
import { relative } from "node:path";
import { type Node, SyntaxKind } from "typescript/unstable/ast";
import {
  isAsExpression,
  isBinaryExpression,
  isBindingElement,
  isComputedPropertyName,
  isElementAccessExpression,
  isNoSubstitutionTemplateLiteral,
  isParenthesizedExpression,
  isPrivateIdentifier,
  isStringLiteral,
} from "typescript/unstable/ast/is";
import { API, type Type, TypeFlags, type UnionOrIntersectionType } from "typescript/unstable/sync";

const ANY_TEXT = TypeFlags.String | TypeFlags.TemplateLiteral | TypeFlags.StringMapping | TypeFlags.Any | TypeFlags.Unknown;
const OF_A_PARAMETER = TypeFlags.TypeParameter | TypeFlags.IndexedAccess | TypeFlags.Index | TypeFlags.Conditional;

interface LookUp {
  readonly node: Node;
  readonly name: Node;
}

/** `file:line text` of each look-up in the project of a tsconfig.json, in those files which `isJudged` accepts by their path from `root`. */
export function findOutsideNames(
  config: string,
  root: string,
  isJudged: (file: string) => boolean,
): { readonly files: number; readonly found: string[] } {
  const api = new API({ cwd: root });
  try {
    const [project] = api.updateSnapshot({ openProjects: [config] }).getProjects();
    if (!project) throw new Error(`There is no project ${config}.`);
    const { program, checker } = project;
    const files = program.getSourceFileNames().filter((file) => isJudged(relative(root, file)));
    const isAnyText = (type: Type | undefined): boolean => {
      if (type === undefined) return true;
      const known = type.flags & OF_A_PARAMETER ? (checker.getBaseConstraintOfType(type) ?? type) : type;
      if (known.flags & TypeFlags.UnionOrIntersection) return (known as UnionOrIntersectionType).getTypes().some(isAnyText);
      return (known.flags & (ANY_TEXT | OF_A_PARAMETER)) !== 0;
    };
    const found = files.flatMap((file) => {
      const source = program.getSourceFile(file);
      if (!source) throw new Error(`${file} cannot be read.`);
      const lookUps = lookUpsIn(source);
      if (lookUps.length === 0) return [];
      const types = checker.getTypeAtLocation(lookUps.map(({ name }) => asserted(name)));
      return lookUps
        .filter((_, index) => isAnyText(types[index]))
        .map(({ node }) => {
          const line = source.text.slice(0, node.getStart()).split("\n").length;
          return `${relative(root, file)}:${line} ${source.text.slice(node.getStart(), node.end).replace(/\s+/g, " ")}`;
        });
    });
    return { files: files.length, found };
  } finally {
    api.close();
  }
}

/** Those whose name is not written out. */
function lookUpsIn(source: Node): LookUp[] {
  const found: LookUp[] = [];
  const visit = (node: Node): void => {
    const name = nameIn(node);
    if (name !== null && !isStringLiteral(name) && !isNoSubstitutionTemplateLiteral(name)) found.push({ node, name });
    node.forEachChild(visit);
  };
  visit(source);
  return found;
}

/** What stands behind an assertion, which the compiler takes on trust. */
function asserted(name: Node): Node {
  return isAsExpression(name) || isParenthesizedExpression(name) ? asserted(name.expression) : name;
}

function nameIn(node: Node): Node | null {
  if (isElementAccessExpression(node)) return node.argumentExpression;
  if (isBinaryExpression(node) && node.operatorToken.kind === SyntaxKind.InKeyword)
    return isPrivateIdentifier(node.left) ? null : node.left;
  if (isBindingElement(node) && node.propertyName && isComputedPropertyName(node.propertyName)) return node.propertyName.expression;
  return null;
}
