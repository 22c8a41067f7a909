/** GraphQL documents that do the same as an operation of REST, by its operation ID. */
export const GRAPHQL_EXAMPLES: ReadonlyMap<string, string> = new Map([
  [
    "createChatCompletion",
    `mutation {
  createChatCompletion(input: { model: "sandbox/text", messages: [{ role: USER, content: "Hello" }] }) {
    raw
    receipt { cost }
  }
}`,
  ],
  ["listModels", "{ models(first: 10) { nodes { restId } } }"],
  ["listOpenAiModels", "{ models(first: 10) { nodes { restId } } }"],
  ["getProfile", "{ me { id handle name } }"],
  ["getBalance", "{ me { balance { available } } }"],
  ["getCurrentKey", "{ me { currentApiKey { id name permissions } } }"],
  ["createKey", 'mutation { createApiKey(input: { name: "My key" }) { key apiKey { id } } }'],
  ["revokeKey", 'mutation { revokeApiKey(input: { id: "ID" }) { apiKey { id } } }'],
  ["revokeOtherSessions", "mutation { revokeOtherSessions(input: {}) { __typename } }"],
]);
