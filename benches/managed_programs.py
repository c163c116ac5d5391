# Real packages under load, each with a leak of a kind that programs have. `managed_programs.py NAME` waits for lines;
# each is a round of work. Without a name it prints "NAME<tab>owner" of all programs whose packages are installed.
import importlib.util
import io
import sys

ROUND = 300


def flask_program():
    from flask import Flask, jsonify, render_template_string, request

    app = Flask("shop")
    app.config["SEEN"] = []

    @app.route("/orders/<int:number>")
    def order(number):
        app.config["SEEN"].append({"number": number, "agent": request.headers.get("User-Agent"), "rows": [number] * 20})
        return render_template_string("<b>{{ number }}</b>{% for row in rows %}{{ row }}{% endfor %}", number=number, rows=range(9))

    @app.route("/api")
    def api():
        return jsonify(rows=[{"id": number} for number in range(50)])

    client = app.test_client()

    def work():
        for number in range(ROUND * 3):
            assert client.get(f"/orders/{number}").status_code == 200
            if number % 10 == 0:
                client.get("/api")

    globals()["app"] = app
    return work


def fastapi_program():
    import pandas
    import sqlalchemy
    from fastapi import FastAPI
    from fastapi.testclient import TestClient
    from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
    from sqlalchemy.pool import StaticPool

    class Base(DeclarativeBase):
        pass

    class Order(Base):
        __tablename__ = "orders"
        id: Mapped[int] = mapped_column(primary_key=True)
        customer: Mapped[str]
        price: Mapped[float]

    engine = sqlalchemy.create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all(Order(customer=f"c{number % 50}", price=number) for number in range(2000))
        session.commit()
    api = FastAPI()

    @api.get("/report/{number}")
    def report(number: int):
        with Session(engine) as session:
            orders = session.scalars(sqlalchemy.select(Order)).all()
            frame = pandas.DataFrame({"customer": [it.customer for it in orders], "price": [it.price for it in orders]})
            REPORTS[number] = frame
            return {"sum": float(frame.groupby("customer")["price"].sum().max())}

    client = TestClient(api)
    numbers = iter(range(1 << 30))

    def work():
        for _ in range(40):
            assert client.get(f"/report/{next(numbers)}").status_code == 200

    return work


REPORTS = {}


def django_program():
    import django
    from django.conf import settings

    settings.configure(
        SECRET_KEY="x", ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], DEBUG=False,
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"],
        TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
    )
    django.setup()
    from django.core.management import call_command
    from django.contrib.auth.models import User
    from django.http import HttpResponse
    from django.core.handlers.wsgi import WSGIHandler
    from django.urls import path

    call_command("migrate", verbosity=0)
    User.objects.bulk_create(User(username=f"u{number}") for number in range(200))

    class Visits:
        seen = []

    def page(request, number):
        Visits.seen.append(User(username=f"{number}", email="x" * 40))
        return HttpResponse(str(User.objects.filter(username=f"u{number % 200}").count()))

    Visits.__qualname__ = "Visits"
    globals().update(urlpatterns=[path("<int:number>/", page)], Visits=Visits)
    handle = WSGIHandler()
    server = {"REQUEST_METHOD": "GET", "SERVER_NAME": "shop", "SERVER_PORT": "80", "wsgi.input": io.BytesIO()}

    def work():
        for number in range(ROUND * 3):
            answer = handle({**server, "PATH_INFO": f"/{number}/"}, lambda status, headers: None)
            assert answer.status_code == 200
            answer.close()

    return work


def aiohttp_program():
    import asyncio
    import threading
    from aiohttp import ClientSession, web

    async def handle(request):
        task = asyncio.create_task(asyncio.sleep(3600))
        request.app["tasks"].append(task)
        return web.json_response({"n": int(request.match_info["n"])})

    async def start():
        application = web.Application()
        application["tasks"] = globals()["TASKS"]
        application.add_routes([web.get("/{n}", handle)])
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return runner.addresses[0][1]

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="loop", daemon=True).start()
    port = asyncio.run_coroutine_threadsafe(start(), loop).result()

    async def load():
        async with ClientSession() as session:
            for number in range(ROUND * 3):
                async with session.get(f"http://127.0.0.1:{port}/{number}") as answer:
                    await answer.json()

    def work():
        asyncio.run_coroutine_threadsafe(load(), loop).result()

    return work


TASKS = []


def tornado_program():
    import asyncio
    import threading
    import tornado.web
    from tornado.httpclient import AsyncHTTPClient
    from tornado.httpserver import HTTPServer
    from tornado.testing import bind_unused_port

    class Page(tornado.web.RequestHandler):
        history = {}

        def get(self, number):
            # The handler itself, with its request and connection.
            Page.history[int(number), len(Page.history)] = self
            self.write({"number": number})

    globals()["Page"] = Page
    Page.__qualname__ = "Page"
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="loop", daemon=True).start()
    socket, port = bind_unused_port()

    async def start():
        HTTPServer(tornado.web.Application([(r"/(\d+)", Page)])).add_sockets([socket])

    asyncio.run_coroutine_threadsafe(start(), loop).result()

    async def load():
        client = AsyncHTTPClient()
        for number in range(ROUND * 2):
            await client.fetch(f"http://127.0.0.1:{port}/{number}")

    return lambda: asyncio.run_coroutine_threadsafe(load(), loop).result()


def celery_program():
    from celery import Celery

    tasks = Celery("tasks", broker="memory://", backend="cache+memory://")
    tasks.conf.task_always_eager = True
    results = globals()["RESULTS"]

    @tasks.task(name="add")
    def add(one, other):
        return {"sum": one + other, "rows": list(range(30))}

    def work():
        for number in range(ROUND * 3):
            results.append(add.delay(number, 7))

    return work


RESULTS = []


def networkx_program():
    import networkx

    class Routes:
        def __init__(self):
            self.cache = {}

        def find(self, start, end):
            graph = networkx.gnm_random_graph(60, 150, seed=start)
            paths = dict(networkx.all_pairs_shortest_path_length(graph, cutoff=2))
            self.cache[start, end, len(self.cache)] = graph
            return paths

    globals()["ROUTES"] = routes = Routes()

    def work():
        for number in range(ROUND // 2):
            routes.find(number, number + 1)

    return work


def lxml_program():
    from lxml import etree

    documents = globals()["DOCUMENTS"]

    def work():
        for number in range(ROUND):
            text = "<shop>" + "".join(f'<order id="{row}"><name>n{row}</name></order>' for row in range(100)) + "</shop>"
            tree = etree.fromstring(text)
            # One element has the whole document.
            documents.append(tree.xpath("//order[@id=7]")[0])

    return work


DOCUMENTS = []


def pillow_program():
    from PIL import Image, ImageFilter

    class Gallery:
        thumbs = {}

    globals()["Gallery"] = Gallery
    Gallery.__qualname__ = "Gallery"

    def work():
        for _ in range(40):
            image = Image.effect_noise((256, 256), 40).convert("RGB").filter(ImageFilter.BLUR)
            Gallery.thumbs[len(Gallery.thumbs)] = image.resize((200, 200))

    return work


def sympy_program():
    import sympy

    x = sympy.Symbol("x")
    solved = globals()["SOLVED"]

    def work():
        for number in range(ROUND // 3):
            expression = sympy.expand((x + number + len(solved)) ** 6) * sympy.sin(x)
            solved[len(solved)] = (expression, sympy.diff(expression, x))

    return work


SOLVED = {}


def pydantic_program():
    from pydantic import BaseModel

    class Line(BaseModel):
        name: str
        price: float

    class Invoice(BaseModel):
        number: int
        lines: list[Line]

    globals()["INVOICES"] = invoices = []

    def work():
        for number in range(ROUND):
            lines = [{"name": f"line {line}", "price": line / 3} for line in range(20)]
            invoices.append(Invoice.model_validate({"number": number, "lines": lines}))

    return work


def twisted_program():
    from twisted.internet import defer, task

    clock = task.Clock()
    waiting = globals()["WAITING"]

    def work():
        for number in range(ROUND * 10):
            call = defer.Deferred()
            call.addCallback(lambda value, number=number: value + number)
            # Nobody ever calls it.
            waiting.add(call)
            clock.callLater(1, lambda: None)
        clock.advance(2)

    return work


WAITING = set()


def gevent_program():
    import gevent
    from gevent.event import Event

    never = Event()
    globals()["NEVER"] = never

    def wait(number):
        rows = [f"row {number}"] * 30
        never.wait()
        return rows

    def work():
        for number in range(ROUND):
            gevent.spawn(wait, number)
        gevent.sleep(0)

    return work


KEPT = {}
LOG = []


def scrapy_program():
    from scrapy.http import HtmlResponse

    page = b"<html><body><a href='/next'>t</a><p>" + b"x" * 300 + b"</p></body></html>"

    def work():
        for number in range(200):
            response = HtmlResponse(f"http://shop/{number}", body=page)
            assert response.css("a::attr(href)").getall() == ["/next"]
            LOG.append(response)

    return work


def ipython_program():
    from contextlib import redirect_stdout

    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()

    def work():
        with redirect_stdout(io.StringIO()):
            for number in range(100):
                shell.run_cell(f"[{number}] * 200", store_history=True)

    return work


def mercurial_program():
    import os
    import tempfile

    from mercurial import commands, hg, ui

    folder = tempfile.mkdtemp()
    settings = ui.ui.load()
    settings.setconfig(b"ui", b"username", b"a")
    settings.setconfig(b"ui", b"quiet", b"1")
    repository = hg.repository(settings, folder.encode(), create=True)
    path = os.path.join(folder, "file")
    numbers = iter(range(1 << 30))
    globals()["_repository"] = repository

    def work():
        for _ in range(30):
            with open(path, "w") as file:
                file.write(f"{next(numbers)}\n")
            commands.commit(settings, repository, path.encode(), message=b"m", addremove=True)
            LOG.append(repository[b"tip"].manifest())

    return work


def sphinx_program():
    import os
    import tempfile

    from sphinx.application import Sphinx

    folder = tempfile.mkdtemp()
    os.makedirs(f"{folder}/doc")
    with open(f"{folder}/doc/conf.py", "w") as file:
        file.write("project = 'p'\n")
    with open(f"{folder}/doc/index.rst", "w") as file:
        file.write("T\n=\n\n" + "\n\n".join(f"Paragraph {number} *x*" for number in range(100)))

    def work():
        out = f"{folder}/out"
        app = Sphinx(f"{folder}/doc", f"{folder}/doc", out, f"{out}/t", "html", status=None, warning=None, freshenv=True)
        app.build(True)
        LOG.append(app.env.get_doctree("index"))

    return work


class Reports:
    def __init__(self):
        self.reports = []

    def pytest_runtest_logreport(self, report):
        self.reports.append(report)


def pytest_program():
    import os
    import tempfile
    from contextlib import redirect_stdout

    import pytest

    path = os.path.join(tempfile.mkdtemp(), "test_shop.py")
    with open(path, "w") as file:
        file.write("import pytest\n@pytest.mark.parametrize('n', range(100))\ndef test_shop(n): assert n >= 0\n")
    globals()["PLUGIN"] = Reports()

    def work():
        with redirect_stdout(io.StringIO()):
            pytest.main(["-q", "-p", "no:cacheprovider", path], plugins=[PLUGIN])

    return work


def jupyter_program():
    import tempfile

    import nbformat
    from jupyter_server.services.contents.filemanager import FileContentsManager

    manager = FileContentsManager(root_dir=tempfile.mkdtemp())
    globals()["_manager"] = manager

    def work():
        for _ in range(50):
            cells = [nbformat.v4.new_code_cell(f"x = {number}") for number in range(20)]
            notebook = {"type": "notebook", "content": nbformat.v4.new_notebook(cells=cells), "format": "json"}
            manager.save(notebook, "n.ipynb")
            KEPT[len(KEPT)] = manager.get("n.ipynb")

    return work


def ansible_program():
    from ansible.inventory.manager import InventoryManager
    from ansible.parsing.dataloader import DataLoader
    from ansible.vars.manager import VariableManager

    loader = DataLoader()
    inventory = InventoryManager(loader=loader, sources="localhost,")
    globals()["VARIABLES"] = VariableManager(loader=loader, inventory=inventory)
    numbers = iter(range(1 << 30))

    def work():
        for _ in range(ROUND):
            host = f"host-{next(numbers)}"
            inventory.add_host(host)
            VARIABLES.set_nonpersistent_facts(host, {f"fact_{number}": f"value {host} " * 2 for number in range(10)})

    return work


def dask_program():
    import dask.bag

    def work():
        for _ in range(10):
            bag = dask.bag.from_sequence(range(100), npartitions=4).map(lambda number: [number] * 10)
            KEPT[len(KEPT)] = (bag, bag.compute(scheduler="sync"))

    return work


def apscheduler_program():
    from apscheduler.schedulers.background import BackgroundScheduler

    globals()["SCHEDULER"] = BackgroundScheduler()
    SCHEDULER.start()

    def work():
        for number in range(500):
            SCHEDULER.add_job(print, "interval", hours=5, args=[str(number) * 50])

    return work


def beets_program():
    from beets.library import Item, Library

    library = Library(":memory:")
    globals()["_library"] = library

    def work():
        for number in range(100):
            library.add(Item(title=f"t{number}", artist="a" * 50, path=f"/x{number}".encode()))
            LOG.append(library.items().get())

    return work


def buildbot_program():
    from buildbot.process.buildstep import BuildStep
    from buildbot.process.properties import Properties

    def work():
        for number in range(ROUND):
            LOG.append((BuildStep(name=f"step-{number}"), Properties(build=str(number) * 30, number=number)))

    return work


# Number of rounds that fill caches, where two are too few.
WARMING = {"sympy": 12}

# Name: packages, first suspect, function.
PROGRAMS = {
    "flask": (["flask"], "module __main__: app.config['SEEN'] (list)", flask_program),
    "fastapi+sqlalchemy+pandas": (["fastapi", "httpx", "sqlalchemy", "pandas"], "module __main__: REPORTS (dict)", fastapi_program),
    "django": (["django"], "class __main__.Visits: seen (list)", django_program),
    "aiohttp": (["aiohttp"], "module __main__: TASKS (list)", aiohttp_program),
    "tornado": (["tornado"], "class __main__.Page: history (dict)", tornado_program),
    "celery": (["celery"], "module __main__: RESULTS (list)", celery_program),
    "networkx": (["networkx"], "module __main__: ROUTES.cache (dict)", networkx_program),
    "lxml": (["lxml"], "module __main__: DOCUMENTS (list)", lxml_program),
    "pillow": (["PIL"], "class __main__.Gallery: thumbs (dict)", pillow_program),
    "sympy": (["sympy"], "module __main__: SOLVED (dict)", sympy_program),
    "pydantic": (["pydantic"], "module __main__: INVOICES (list)", pydantic_program),
    "twisted": (["twisted"], "module __main__: WAITING (set)", twisted_program),
    "gevent": (["gevent"], "module __main__: NEVER", gevent_program),
    "scrapy": (["scrapy"], "module __main__: LOG (list)", scrapy_program),
    "ipython": (["IPython"], "class IPython.core.history.HistoryManager: outputs", ipython_program),
    "mercurial": (["mercurial"], "module __main__: LOG (list)", mercurial_program),
    "sphinx": (["sphinx"], "module __main__: LOG (list)", sphinx_program),
    "pytest": (["pytest"], "module __main__: PLUGIN.reports (list)", pytest_program),
    "jupyter_server": (["jupyter_server", "nbformat"], "module __main__: KEPT (dict)", jupyter_program),
    "ansible-core": (["ansible"], "module __main__: VARIABLES._nonpersistent_fact_cache", ansible_program),
    "dask": (["dask"], "module __main__: KEPT (dict)", dask_program),
    "apscheduler": (["apscheduler"], "module __main__: SCHEDULER._jobstores['default']._jobs", apscheduler_program),
    "beets": (["beets"], "module __main__: LOG (list)", beets_program),
    "buildbot": (["buildbot"], "module __main__: LOG (list)", buildbot_program),
}


def main():
    if len(sys.argv) == 1:
        for name, (packages, owner, _) in PROGRAMS.items():
            if all(importlib.util.find_spec(package) for package in packages):
                print(name, owner, sep="\t")
        return
    work = PROGRAMS[sys.argv[1]][2]()
    # The first rounds fill caches.
    for _ in range(WARMING.get(sys.argv[1], 2)):
        work()
    print("READY", flush=True)
    for _ in sys.stdin:
        work()
        print("DONE", flush=True)


main()
