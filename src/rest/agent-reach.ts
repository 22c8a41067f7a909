/** The REST endpoints that an agent run may call (docs/spec/agents.md#run-tokens): those marked at their declaration, and no others. */

const reachable = new WeakSet<object>();

export function letAgentsReach<Handler extends object>(handler: Handler): Handler {
  reachable.add(handler);
  return handler;
}

export function isReachableByAgents(handler: object): boolean {
  return reachable.has(handler);
}
