/** Log messages of a stopping gateway, of one process or several. */
export const LEAVING = "not ready any more: requests are still taken, so that balancers have time to send them elsewhere";
export const STOPPING = "stopping: no new connections, streams may finish";
