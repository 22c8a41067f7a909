/** Types the documents that clients of this repository send: `npm run codegen`. The build runs it when a document or the schema changed. */

import { addTypenameSelectionDocumentTransform } from "@graphql-codegen/client-preset";
import type { Types } from "@graphql-codegen/plugin-helpers";

const config: Types.Config = {
  importExtension: ".js",
  schema: "schema/schema.graphql",
  generates: {
    "test/operations/generated/": {
      documents: ["test/operations/**/*.graphql"],
      preset: "client",
      presetConfig: {
        fragmentMasking: false,
        // The digest that Apollo's protocol and the manifest of trusted documents name a document by.
        persistedDocuments: { hashAlgorithm: "sha256" },
      },
    },
    "dashboard/src/client/generated/": {
      documents: ["dashboard/src/**/*.graphql"],
      preset: "client",
      presetConfig: {
        fragmentMasking: false,
        // Browsers load the digests alone: the gateway knows the texts.
        persistedDocuments: { hashAlgorithm: "sha256", mode: "replaceDocumentWithHash", hashPropertyName: "documentId" },
      },
      // By the names of types the browser's cache knows which answers a mutation makes outdated.
      documentTransforms: [addTypenameSelectionDocumentTransform],
    },
  },
  config: {
    scalars: { Credits: "string", DateTime: "string", File: "unknown", ID: "string", JSON: "unknown", Price: "string" },
    strictScalars: true,
    // Types alone, which leave nothing behind when they are stripped: a test writes "SECRET" as a client does.
    enumsAsTypes: true,
    useTypeImports: true,
    skipTypename: true,
    // Selected fields are always there, if only as null; input fields may be omitted.
    avoidOptionals: { field: true, inputValue: false, object: false, defaultValue: false },
    immutableTypes: true,
  },
};

export default config;
