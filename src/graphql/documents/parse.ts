/** Parses a document within its limits: characters, tokens and comments are counted first. */
import { type DocumentNode, GraphQLError, type Location, Source, type Token, TokenKind } from "graphql";
import { Parser } from "graphql/language/parser.js";
import { GRAPHQL_COMMENTS_MAX, GRAPHQL_DOCUMENT_CHARS_MAX, GRAPHQL_NAME_CHARS_MAX, GRAPHQL_TOKENS_MAX } from "../limits.js";
import { DocumentText, setPlace } from "./places.js";

/** Nodes have a place instead of graphql-js's `loc`, which would keep every token of the document. */
class BoundedParser extends Parser {
  readonly #source: Source;
  readonly #text: DocumentText;

  constructor(source: Source) {
    super(source, { noLocation: true, maxComments: GRAPHQL_COMMENTS_MAX });
    this.#source = source;
    this.#text = new DocumentText(source.body);
  }

  override advanceLexer(): void {
    super.advanceLexer();
    const { kind, value, start } = this._lexer.token;
    if (this.tokenCount > GRAPHQL_TOKENS_MAX) throw this.#refuse(`Token limit of ${GRAPHQL_TOKENS_MAX} exceeded.`, start);
    if (kind === TokenKind.NAME && value.length > GRAPHQL_NAME_CHARS_MAX) {
      throw this.#refuse(`A name has ${value.length} characters, and at most ${GRAPHQL_NAME_CHARS_MAX} are allowed.`, start);
    }
  }

  override node<Node extends { loc?: Location }>(startToken: Token, node: Node): Node {
    setPlace(node, this.#text, startToken.start);
    return node;
  }

  #refuse(message: string, start: number): GraphQLError {
    return new GraphQLError(message, { source: this.#source, positions: [start] });
  }
}

/** Throws a GraphQLError for text that is not a document, or exceeds a limit. */
export function parseDocument(text: string | Source): DocumentNode {
  const source = typeof text === "string" ? new Source(text) : text;
  if (source.body.length > GRAPHQL_DOCUMENT_CHARS_MAX) {
    throw new GraphQLError(
      `The document has ${source.body.length} characters, and at most ${GRAPHQL_DOCUMENT_CHARS_MAX} are allowed: send long texts in variables.`,
    );
  }
  return new BoundedParser(source).parseDocument();
}
