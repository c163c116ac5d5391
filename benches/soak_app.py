# Server for soak_client.py, for WSGI (gunicorn) and ASGI (uvicorn, with a pool of threads).
import asyncio


def answer(number):
    parts = [bytearray(1000 + (number + k) % 3000) for k in range(50)]
    return str(sum(map(len, parts))).encode()


def wsgi(environ, start):
    body = answer(int(environ["PATH_INFO"][1:]))
    start("200 OK", [("Content-Length", str(len(body)))])
    return [body]


async def asgi(scope, receive, send):
    if scope["type"] != "http":
        return
    body = await asyncio.to_thread(answer, int(scope["path"][1:]))
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})
